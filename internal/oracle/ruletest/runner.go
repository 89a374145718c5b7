package ruletest

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"weir/internal/oracle/model"
	"weir/pf/resolve"
)

// A Runner evaluates rules for packets.
type Runner struct {
	host  *resolve.Host
	rules *resolve.Ruleset
	box   *model.Box
}

// NewRunner returns a Runner for rules on a host with these routes; Described returns those of
// the description.
func NewRunner(rules *resolve.Ruleset, host *resolve.Host, route Router) *Runner {
	if host == nil {
		host = &resolve.Host{}
	}
	return &Runner{host: host, rules: rules, box: box(host, rules.Options.Groups, route)}
}

// A Result is the result for an expectation's packet. If the packet may take one of
// several next hops, it describes the first that is not as expected.
type Result struct {
	Expectation *Expectation
	Outcome     *Outcome
	Failures    []Failure // none: the expectation holds
}

// A Failure is a field of an expectation that does not hold.
type Failure struct {
	Field string `json:"field"`
	Want  any    `json:"want"`
	Got   any    `json:"got"`
}

// An Outcome is the result for a packet, in the words of an expectation.
type Outcome struct {
	Verdict     string     `json:"verdict"`
	Reason      string     `json:"reason"`
	Out         string     `json:"out,omitempty"`
	Local       bool       `json:"local"`
	NoRoute     bool       `json:"no_route,omitempty"`
	NextHop     netip.Addr `json:"next_hop,omitzero"`
	Source      Ends       `json:"source_after,omitempty"`
	Destination Ends       `json:"destination_after,omitempty"`
	Answer      Answer     `json:"answer"`
	State       bool       `json:"state"`
	Log         bool       `json:"log"`
	Tag         string     `json:"tag,omitempty"`
	Mark        Mark       `json:"mark"` // with which it leaves
	Prio        string     `json:"prio,omitempty"`
	Queue       string     `json:"queue,omitempty"`
	Decided     *Rule      `json:"decided_by,omitempty"`
	In          *Rule      `json:"rule_in,omitempty"`
	OutRule     *Rule      `json:"rule_out,omitempty"`
	Translated  []*Rule    `json:"translated_by,omitempty"` // rules of FreeBSD's lists
}

// A Rule is one that decided at a crossing.
type Rule struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`

	Labels []string `json:"labels,omitempty"`
}

// RunOne evaluates the rules for the packet of an expectation. It returns an error if the
// expectation names an interface that the host does not have.
func (j *Runner) RunOne(e *Expectation) (*Result, error) {
	index, err := interfaceIndex(j.host, e.In)
	if err != nil {
		return nil, err
	}
	r := &Result{Expectation: e}
	ways := model.New(j.box, j.rules, 0).TraceAll(&model.Frame{Interface: index, Mark: uint32(e.Packet.Mark), Bytes: e.Packet.Bytes()})
	for i := range ways {
		o := j.outcome(&ways[i], &e.Packet)
		failures := compare(e, o, &ways[i])
		if i == 0 || r.Failures == nil && failures != nil {
			r.Outcome, r.Failures = o, failures
		}
	}
	return r, nil
}

// outcome describes a forwarding in the words of an expectation.
func (j *Runner) outcome(f *model.Forwarding, p *Packet) *Outcome {
	o := &Outcome{
		Verdict: Block, Reason: f.Reason.String(), Answer: AnswerOf(f.Answer),
		State: f.State, Tag: f.Tag, Mark: Mark(f.Mark), Prio: f.Prio, Queue: f.Queue, Log: f.In.Log || f.Out.Log,
		Decided: j.rule(f.Rule()), In: j.rule(f.In.Decided()), OutRule: j.rule(f.Out.Decided()),
	}
	for _, t := range []*resolve.TranslationRule{f.In.Translation, f.Out.Translation} {
		if t != nil {
			o.Translated = append(o.Translated, j.rule(&t.Rule))
		}
	}
	if !f.Pass {
		return o
	}
	o.Verdict, o.Local, o.NoRoute, o.NextHop = Pass, f.Local, f.NoRoute, f.NextHop
	o.Source, o.Destination = describe(&f.Src, hasPorts(p.Proto)), describe(&f.Dst, hasPorts(p.Proto))
	if f.Interface != 0 {
		o.Out = j.box.Interfaces[f.Interface-1].Name
	}
	return o
}

func (j *Runner) rule(r *resolve.Rule) *Rule {
	if r == nil {
		return nil
	}
	at := j.rules.Source.Files.Position(r.Pos)
	told := &Rule{File: at.File, Line: at.Line, Text: r.Text}
	if r.Label != "" {
		told.Labels = append([]string{r.Label}, r.MoreLabels...)
	}
	return told
}

// compare returns the fields of an expectation that do not hold.
func compare(e *Expectation, o *Outcome, f *model.Forwarding) []Failure {
	var failed []Failure
	fail := func(field string, want, got any) { failed = append(failed, Failure{field, want, got}) }
	if e.Verdict != o.Verdict {
		fail("verdict", e.Verdict, o.Verdict)
	}
	if e.Out != nil && !slices.Contains(e.Out, o.Out) {
		fail("out", e.Out, o.Out)
	}
	if e.Local != nil && *e.Local != o.Local {
		fail("local", *e.Local, o.Local)
	}
	if e.NextHop != nil && !slices.Contains(e.NextHop, text(o.NextHop)) {
		fail("next_hop", e.NextHop, text(o.NextHop))
	}
	if e.Source != nil && (o.Source == nil || !e.Source.hold(&f.Src)) {
		fail("source_after", e.Source, o.Source)
	}
	if e.Destination != nil && (o.Destination == nil || !e.Destination.hold(&f.Dst)) {
		fail("destination_after", e.Destination, o.Destination)
	}
	if e.Answer != nil && *e.Answer != o.Answer {
		fail("answer", e.Answer, o.Answer)
	}
	if e.State != nil && *e.State != o.State {
		fail("state", *e.State, o.State)
	}
	if e.Log != nil && *e.Log != o.Log {
		fail("log", *e.Log, o.Log)
	}
	if e.Tag != nil && *e.Tag != o.Tag {
		fail("tag", *e.Tag, o.Tag)
	}
	if e.Mark != nil && *e.Mark != o.Mark {
		fail("mark", *e.Mark, o.Mark)
	}
	if e.Prio != nil && fmt.Sprint(*e.Prio) != o.Prio {
		fail("prio", *e.Prio, o.Prio)
	}
	if e.Queue != nil && *e.Queue != o.Queue {
		fail("queue", *e.Queue, o.Queue)
	}
	return append(failed, compareRule(e, o.Decided)...)
}

func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// compareRule compares an expectation with the rule that decided.
func compareRule(e *Expectation, r *Rule) []Failure {
	var failed []Failure
	none := r == nil
	if none {
		r = &Rule{}
	}
	if e.Label != nil && !slices.Contains(r.Labels, *e.Label) && (*e.Label != "" || r.Labels != nil) {
		failed = append(failed, Failure{"label", *e.Label, strings.Join(r.Labels, ", ")})
	}
	if e.Rule != nil && *e.Rule != r.Text {
		failed = append(failed, Failure{"rule", *e.Rule, r.Text})
	}
	if e.At != nil && !e.At.is(r) {
		got := ""
		if !none {
			got = r.place()
		}
		failed = append(failed, Failure{"line", e.At.String(), got})
	}
	return failed
}

// is reports whether a rule is at this place. The last elements are enough to name a
// file.
func (p *Place) is(r *Rule) bool {
	return p.Line == r.Line && (p.File == "" || p.File == r.File || filepath.Base(r.File) == p.File)
}

func (r *Rule) place() string { return r.File + ":" + strconv.Itoa(r.Line) }

// String returns the place and the text of a rule.
func (r *Rule) String() string { return fmt.Sprintf("%s: %s", r.place(), r.Text) }
