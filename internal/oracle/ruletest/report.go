package ruletest

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Report is the results of a file's expectations, in its order.
type Report struct {
	Name    string // of the file
	Results []*Result
}

// Run evaluates all expectations. name is their file's name in messages. It returns
// Faults for expectations that are impossible on the host.
func (j *Runner) Run(name string, all []*Expectation) (*Report, error) {
	report := &Report{Name: name}
	var faults Faults
	for _, e := range all {
		result, err := j.RunOne(e)
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s:%d:1: %v", name, e.Line, err))
			continue
		}
		report.Results = append(report.Results, result)
	}
	if faults != nil {
		return nil, faults
	}
	return report, nil
}

// Failed returns the number of expectations that do not hold.
func (r *Report) Failed() int {
	n := 0
	for _, result := range r.Results {
		if len(result.Failures) > 0 {
			n++
		}
	}
	return n
}

// Fprint prints the expectations that do not hold, and a closing line.
func (r *Report) Fprint(w io.Writer) error {
	var b strings.Builder
	for _, result := range r.Results {
		if len(result.Failures) > 0 {
			result.write(&b, r.Name)
		}
	}
	all := len(r.Results)
	switch failed := r.Failed(); failed {
	case 0:
		fmt.Fprintf(&b, "%s\n", count(all, "holds", "hold"))
	case 1:
		fmt.Fprintf(&b, "1 of %s does not hold\n", count(all, "", ""))
	default:
		fmt.Fprintf(&b, "%d of %s do not hold\n", failed, count(all, "", ""))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// count returns a number of expectations with the verb that fits.
func count(n int, one, several string) string {
	text := fmt.Sprintf("%d expectations %s", n, several)
	if n == 1 {
		text = "1 expectation " + one
	}
	return strings.TrimSpace(text)
}

// write describes a result that is not as expected.
func (r *Result) write(b *strings.Builder, name string) {
	from := ", of the box itself"
	if r.Expectation.In != "" {
		from = ", in by " + r.Expectation.In
	}
	fmt.Fprintf(b, "%s:%d: %s%s\n", name, r.Expectation.Line, r.Expectation.Text, from)
	for _, f := range r.Failures {
		fmt.Fprintf(b, "    %s: expected %s, got %s\n", f.Field, quoted(f.Want), quoted(f.Got))
	}
	fmt.Fprintf(b, "    %s\n", strings.ReplaceAll(r.Outcome.String(), "\n", "\n    "))
}

// quoted returns a field's value as it is printed.
func quoted(v any) string {
	switch v := v.(type) {
	case string:
		if v == "" {
			return "none"
		}
		return fmt.Sprintf("%q", v)
	case Any:
		return `"` + strings.Join(v, `" or "`) + `"`
	case Ends:
		if len(v) == 0 {
			return "none"
		}
		return v.String()
	}
	return fmt.Sprint(v)
}

// String describes what happened to a packet, and by which rules, a line each.
func (o *Outcome) String() string {
	return strings.Join(append([]string{o.sentence()}, o.rules()...), "\n")
}

// sentence describes what happened to a packet.
func (o *Outcome) sentence() string {
	if o.Verdict == Block {
		return fmt.Sprintf("it was blocked (%s), answered by %s", o.Reason, o.Answer)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "it passed (%s)", o.Reason)
	switch {
	case o.Local:
		b.WriteString(" to the box itself")
	case o.NoRoute:
		b.WriteString(", but there is no route")
	case o.Out != "":
		fmt.Fprintf(&b, " out by %s to %s", o.Out, o.NextHop)
	}
	if o.Source != nil {
		fmt.Fprintf(&b, ": %s > %s", o.Source, o.Destination)
	}
	return b.String()
}

// rules returns the rules that decided at the crossings.
func (o *Outcome) rules() []string {
	var all []string
	if o.In != nil {
		all = append(all, "in:  "+o.In.String())
	}
	if o.OutRule != nil {
		all = append(all, "out: "+o.OutRule.String())
	}
	for _, t := range o.Translated {
		if !slices.ContainsFunc([]*Rule{o.In, o.OutRule}, func(r *Rule) bool { return r != nil && r.Text == t.Text }) {
			all = append(all, "translated by "+t.String())
		}
	}
	if all == nil {
		all = append(all, "no rule decided")
	}
	return all
}

// A Record is a result in JSON.
type Record struct {
	Line     int       `json:"line"`
	In       string    `json:"in,omitempty"`
	Packet   string    `json:"packet"`
	Why      string    `json:"why,omitempty"`
	Holds    bool      `json:"holds"`
	Failures []Failure `json:"failures"`
	Outcome  *Outcome  `json:"outcome"`
}

// Records returns all results for JSON.
func (r *Report) Records() []Record {
	records := make([]Record, 0, len(r.Results))
	for _, result := range r.Results {
		e := result.Expectation
		records = append(records, Record{
			Line: e.Line, In: e.In, Packet: e.Text, Why: e.Why, Holds: len(result.Failures) == 0,
			Failures: append([]Failure{}, result.Failures...), Outcome: result.Outcome,
		})
	}
	return records
}
