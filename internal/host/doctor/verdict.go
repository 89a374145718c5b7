package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/internal/units"
)

// Report is doctor's report about a snapshot.
type Report struct {
	Verdict  Verdict       `json:"verdict"`
	Findings []Finding     `json:"findings"` // gravest first
	Checks   []CheckResult `json:"checks"`
	Tunnels  []string      `json:"tunnels,omitempty"` // each tunnel's traffic, and the core that carries it
	Shapers  []string      `json:"shapers,omitempty"` // each discipline that held back, dropped or queued packets
	Notes    []string      `json:"notes,omitempty"`   // about the source, or doctor's own cost
}

// Verdict says in one sentence, without the full stop, what limits the router now.
type Verdict struct {
	Sentence string   `json:"sentence"`
	Check    string   `json:"check,omitempty"` // check of the finding or cause; "": nothing is wrong
	Limit    Limit    `json:"limit"`
	Severity Severity `json:"severity"` // that of the gravest finding
	// Unseen lists checks that could have found a problem, but lacked all or part of
	// their input. The verdict does not cover them.
	Unseen []string `json:"unseen,omitempty"`
}

// Limit is the kind of thing that limits the router.
type Limit string

// Kinds of limits.
const (
	LimitBox     Limit = "box"     // something in or about this box: see the findings
	LimitLink    Limit = "link"    // a link is full
	LimitShaper  Limit = "shaper"  // a shaper is at its configured rate
	LimitFar     Limit = "far end" // nothing here is near its limit
	LimitIdle    Limit = "none"    // there is hardly any traffic
	LimitUnknown Limit = "unknown" // the inputs for a verdict were not readable
)

// CheckResult is the end of one check.
type CheckResult struct {
	ID    string   `json:"id"`
	Title string   `json:"title"`
	State State    `json:"state"`
	Why   []string `json:"why,omitempty"` // what was not readable, or why the check does not apply
}

// Examine runs the checks on a snapshot, except those to skip. It returns an error if
// skip names a check that does not exist. Case does not matter.
func Examine(s *Snapshot, skip []string) (*Report, error) {
	checks := Checks()
	skip = slices.Clone(skip)
	for i := range skip {
		skip[i] = strings.ToUpper(strings.TrimSpace(skip[i]))
	}
	for _, id := range skip {
		if !slices.ContainsFunc(checks, func(c Check) bool { return c.ID == id }) {
			return nil, fmt.Errorf("there is no check %q to skip; weir doctor --list names them", id)
		}
	}
	v := newView(s)
	r := &Report{Findings: []Finding{}}
	for i := range checks {
		c := &checks[i]
		judged := CheckResult{ID: c.ID, Title: c.Title, State: Skipped}
		if !slices.Contains(skip, c.ID) {
			r.runCheck(c, v, &judged)
			r.addLogged(c, v, &judged)
		}
		r.Checks = append(r.Checks, judged)
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	r.addSpread(s)
	r.explain(v)
	r.relieve(v)
	r.Verdict = v.verdict(r)
	r.addFurther()
	r.adviseOnce()
	r.Verdict.Unseen = r.uncheckedIDs(checks)
	if r.Verdict.Limit != LimitUnknown && r.Verdict.Severity == Notice {
		r.Verdict.Sentence += without(r.Verdict.Unseen)
	}
	r.Notes = v.notes()
	r.Tunnels, r.Shapers = v.tunnelLines(), v.shaperLines()
	return r, nil
}

// rearrangeable lists the checks whose findings weir affinity auto may solve.
var rearrangeable = []string{"PPP-1", "RSS-1", "RSS-2", "RPS-1", "IRQ-1", "IRQ-2", "IRQ-3"}

// addSpread offers weir affinity auto if it would change something.
func (r *Report) addSpread(s *Snapshot) {
	plan := PlanSpread(s, false)
	if len(plan.Queues)+len(plan.Places) == 0 || s.Workers != nil { // with workers, the source is another system
		return
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Severity > Notice && slices.Contains(rearrangeable, f.Check) {
			f.Remedies = append(f.Remedies, rearrange)
		}
	}
}

// relieve gives findings caused by a full core the remedies for what fills that core.
func (r *Report) relieve(v *view) {
	full := Remedy{Command: "weir affinity", Text: "see which queues and masks bring packets to which core, with load and rates"}
	if len(v.spreadable()) == 0 {
		full = cheaper
	}
	relief := []Remedy{full}
	if c := r.cause(v); c != nil && c.Remedies != nil {
		relief = c.Remedies
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.relief {
			f.Remedies = append(f.Remedies, relief...)
		}
	}
}

// runCheck runs one check. Findings stay in the order of the checks; within a check the
// weightiest comes first.
func (r *Report) runCheck(c *Check, v *view, judged *CheckResult) {
	o := c.judge(v)
	judged.State, judged.Why = o.state(), slices.Concat(o.missing, o.apart)
	if judged.State == NotHere {
		judged.Why = []string{o.absent}
	}
	slices.SortStableFunc(o.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(b.weight, a.weight))
	})
	for _, f := range o.findings {
		f.Check = c.ID
		r.Findings = append(r.Findings, f)
	}
}

func (v *view) notes() (notes []string) {
	if v.Source != "" {
		notes = append(notes, "read from the output of "+v.Source)
	}
	if v.Cost != nil && v.Seconds > 0 {
		notes = append(notes, fmt.Sprintf("reading this took %s of one core over %s", percent(v.Cost.CPUSeconds/v.Seconds), seconds(v.Seconds)))
	}
	for _, n := range v.nics {
		if share, _, known := n.used(v.Seconds); known && share > impossible {
			notes = append(notes, fmt.Sprintf("%s counted %s of what a link of its speed (%s Mbit/s) carries: its load is not checked",
				n.Name, percent(share), units.Thousands(n.Mbit)))
		}
	}
	if why := v.Unreadable["host.network_namespace"]; why != "" {
		notes = append(notes, "whether this is the machine's first network namespace cannot be told ("+why+"): only what is this namespace's is judged")
	}
	if v.Unreadable["threads"] != "" {
		notes = append(notes, "what the kernel's threads do is not known: "+v.Unreadable["threads"])
	}
	if v.Unreadable["log"] != "" {
		notes = append(notes, "the kernel's log was not readable ("+v.Unreadable["log"]+"): what happened before is not seen")
	}
	switch w := v.Watched; {
	case w != nil && w.Seconds > 0:
		notes = append(notes, fmt.Sprintf("counting in the kernel took %s of one core over %s, in %s runs of its programs",
			percent(w.OwnSeconds/w.Seconds), seconds(w.Seconds), units.Short(float64(w.Runs))))
	case v.Unreadable["watched"] != "":
		notes = append(notes, "nothing was counted in the kernel ("+v.Unreadable["watched"]+"): everything is from /proc, /sys and netlink")
	}
	return notes
}

// Status returns the command's exit status: 0 if nothing hurts, 1 if something hurts or
// will, 3 if something limits the router or loses packets now. 2 is left for wrong usage.
func (r *Report) Status() int {
	return [...]int{Notice: 0, Warning: 1, Critical: 3}[r.Verdict.Severity]
}

func (v *view) verdict(r *Report) Verdict {
	if len(r.Findings) == 0 || r.Findings[0].Severity == Notice {
		return v.nothing(r)
	}
	top := &r.Findings[0]
	verdict := Verdict{Sentence: top.Says, Check: top.Check, Limit: LimitBox, Severity: top.Severity}
	filled := top.Check == "CPU-1" || top.Check == "CPU-2" || r.names(top)
	if top.Check == "CPU-1" || r.names(top) {
		if cause := r.cause(v); cause != nil {
			verdict.Check = cause.Check
			verdict.Sentence = v.joined(v.named(cause))
		} else if most := v.packetShare(); most != "" {
			verdict.Sentence = v.joined(most)
		}
	}
	if filled && v.atLink() {
		verdict.Limit = LimitLink
		verdict.Sentence = fmt.Sprintf("The link is the limit: %s; the next one is near: %s", v.linkLine(), verdict.Sentence)
	}
	if filled || r.explains(top) {
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Check == "RING-1" && f.Severity == Critical && f.Check != top.Check {
				verdict.Sentence += fmt.Sprintf("; %s loses %s of its packets", f.Subject, percent(f.weight))
				break
			}
		}
	}
	return verdict
}

// named returns the text of a cause. If several cores are full, the core's name replaces
// "it".
func (v *view) named(cause *Finding) string {
	rest, pronoun := strings.CutPrefix(cause.because, "it ")
	if !pronoun || len(v.spreadable()) == 1 {
		return cause.because
	}
	return fmt.Sprintf("cpu%d %s", cause.core, rest)
}

// joined returns the sentence about a full core with its cause.
func (v *view) joined(because string) string {
	filled := v.spreadable()
	return fmt.Sprintf("%s %s full of %s: %s; %s", cpuNames(filled), beVerb(len(filled)), packetWork(filled), because, v.room(filled))
}

// explains reports whether a finding stands above another that it explains.
func (r *Report) explains(f *Finding) bool {
	return slices.ContainsFunc(r.Findings, func(other Finding) bool { return other.Because == f.Check })
}

// names reports whether a finding is what brings a full core its packets.
func (r *Report) names(f *Finding) bool {
	named := slices.ContainsFunc(Graph, func(e Edge) bool { return e.Named && f.is(e.Cause) })
	return named && slices.ContainsFunc(r.Findings, func(full Finding) bool { return full.Check == "CPU-1" && full.Because == f.Check })
}

// cause returns the first finding that explains a full core.
func (r *Report) cause(v *view) *Finding {
	filled := v.spreadable()
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.because != "" && slices.ContainsFunc(filled, func(c *core) bool { return c.ID == f.core }) {
			return r.shared(v, f)
		}
	}
	for i := range r.Findings { // findings whose core is unknown
		if f := &r.Findings[i]; f.because != "" && f.core < 0 && f.Severity > Notice {
			return f
		}
	}
	return nil
}

// mostly is the share of a core's packets above which one queue alone explains the load,
// whatever else the core serves.
const mostly = 0.65

// shared returns the finding that a core serves several queues, if that explains the
// core's load better than a single queue does.
func (r *Report) shared(v *view, one *Finding) *Finding {
	if !slices.Contains([]string{"RSS-1", "RSS-2", "RPS-1"}, one.Check) {
		return one
	}
	for _, n := range v.nics {
		for _, q := range n.queues {
			if len(q.cores) > 0 && q.cores[0] == one.core && q.burden >= mostly && !v.enoughToMove(n, q) {
				return one
			}
		}
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Check == "IRQ-1" && f.core == one.core {
			return f
		}
	}
	return one
}

// enoughToMove reports whether the core of a queue has room as soon as its other queues are served elsewhere. A guest's
// card can get more queues instead, which is better.
func (v *view) enoughToMove(n *nic, q *queue) bool {
	c := v.core(q.cores[0])
	return c != nil && !v.Host.Hypervisor && !paravirtual[n.Driver] && q.burden*c.busy < roomy
}

// roomy is the share of a core's time that a queue may take so that moving the others is enough.
const roomy = 0.7

// atLink reports whether a link is full and nothing is lost before it. Then the link
// limits the router, and a full core could only be next.
func (v *view) atLink() bool {
	n, share, sends := v.fullest()
	if share < linkFull || !v.carries(n, sends) {
		return false
	}
	return !slices.ContainsFunc(v.cores, func(c *core) bool { return c.dropped > 0 }) &&
		!slices.ContainsFunc(v.nics, func(n *nic) bool { lost, _ := v.lost(n); return lost >= fewLost })
}

// carries reports whether a card receives or sends a good part of what the full cores
// receive. A full link without a part in it is not the limit. It compares bytes, because
// one packet may be sent as several.
func (v *view) carries(n *nic, sends bool) bool {
	filled := v.fullCores()
	var all, own float64
	for _, m := range v.nics {
		for _, q := range m.queues {
			if len(q.cores) == 0 || !slices.Contains(filled, v.core(q.cores[0])) {
				continue
			}
			bytes := q.share * float64(m.link.RxBytes)
			all += bytes
			if m == n {
				own += bytes
			}
		}
	}
	if sends {
		own = float64(n.link.TxBytes)
	}
	return all == 0 || own >= burdensome*all
}

// critical returns the severity of what fills a core. It is only a warning while a link
// is the limit.
func (v *view) critical() Severity {
	if v.atLink() {
		return Warning
	}
	return Critical
}

// linkLine says how full the fullest link is.
func (v *view) linkLine() string {
	n, share, sends := v.fullest()
	bytes, verb := n.link.RxBytes, "receives"
	if sends {
		bytes, verb = n.link.TxBytes, "sends"
	}
	return fmt.Sprintf("%s %s %s, %s of what its %s carry with preambles and gaps",
		n.Name, verb, bitRate(float64(bytes)*8/v.Seconds), percent(share), bitRate(float64(n.Mbit)*1e6))
}

// packetShare says what share of the packets the full cores take, or a single core if no queue
// explains its load.
func (v *view) packetShare() string {
	filled := v.spreadable()
	var sum, here uint64
	for _, c := range v.cores {
		sum += v.receivedBy(c)
	}
	for _, c := range filled {
		here += v.receivedBy(c)
	}
	var parts []string
	who := "the stack receives"
	if v.Watched != nil {
		who = "the cards' queues brought"
	}
	if len(filled) == 1 {
		if served := v.queuesServedBy(filled[0].ID); len(served) > 0 && len(served) <= fewNames {
			parts = append(parts, "serves "+join(served))
		}
	}
	if sum > 0 && float64(here)/float64(sum)*float64(len(v.cores)) >= unequal*float64(len(filled)) {
		parts = append(parts, fmt.Sprintf("takes %s of the packets that %s", percent(float64(here)/float64(sum)), who))
	}
	if len(parts) == 0 {
		return ""
	}
	if len(filled) > 1 {
		return "they take" + strings.TrimPrefix(parts[0], "takes")
	}
	return "it " + join(parts)
}

// fewNames is the number of queues that a sentence can name.
const fewNames = 4

// uncheckedIDs returns the checks whose worst finding hurts and whose inputs were not all
// readable.
func (r *Report) uncheckedIDs(checks []Check) (ids []string) {
	for i := range checks {
		if c := &r.Checks[i]; checks[i].Worst > Notice && len(c.Why) > 0 && c.State != NotHere {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// without names the checks that a verdict does not cover.
func without(unseen []string) string {
	const most = 4
	switch {
	case len(unseen) == 0:
		return ""
	case len(unseen) > most:
		return fmt.Sprintf("; %s and %d more could not be checked", strings.Join(unseen[:most], ", "), len(unseen)-most)
	}
	return "; " + join(unseen) + " could not be checked"
}

// nothing returns the verdict if no check found a problem.
func (v *view) nothing(r *Report) Verdict {
	const fine = "Nothing is wrong here: "
	if missing := r.blind(needed); len(missing) > 0 {
		return unknownVerdict(missing)
	}
	if _, share, _ := v.fullest(); share >= linkFull {
		return Verdict{Limit: LimitLink, Sentence: fmt.Sprintf("%sthe link is the limit: %s; %s", fine, v.linkLine(), v.busiest())}
	}
	if q := v.shaped(); q != nil {
		return Verdict{Limit: LimitShaper, Sentence: fmt.Sprintf("%sthe shaper is the limit, as configured: %s; %s", fine, q.line(v.Seconds), v.busiest())}
	}
	if q := v.presumedShaper(); q != nil {
		return Verdict{Limit: LimitShaper, Sentence: fmt.Sprintf("The shaper seems to be the limit: %s, %s times held back, and its rate is not known here (see tc -s -d class show dev %s); %s",
			q.line(v.Seconds), units.Thousands(int(q.Overlimits)), q.Interface, v.busiest())}
	}
	if missing := r.blind(refusing); len(missing) > 0 && v.weirUnread() {
		return unknownVerdict(missing)
	}
	if v.idle() {
		return Verdict{Limit: LimitIdle, Sentence: fine + "the router has next to nothing to do: " + v.busiest()}
	}
	return Verdict{Limit: LimitFar, Sentence: fine + "no part of this box is at its limit, so the far end (or the way to it) is: " + v.busiest()}
}

// needed lists the checks required before doctor says that the box is not the limit.
var needed = []string{"CPU-1", "RING-1"}

// refusing lists the checks required before doctor says that weir refuses no connections,
// whatever room cores and links have.
var refusing = []string{"STATE-1", "NAT-1"}

func unknownVerdict(missing []string) Verdict {
	return Verdict{Limit: LimitUnknown, Sentence: "Nothing was found, but the router's limit is unknown: " + join(missing) + " could not be checked here"}
}

func (r *Report) blind(needed []string) (ids []string) {
	for _, c := range r.Checks {
		if slices.Contains(needed, c.ID) && (c.State == Unreadable || c.State == Skipped) {
			ids = append(ids, fmt.Sprintf("%s (%s)", c.ID, c.Title))
		}
	}
	return ids
}

// fullest returns the device whose link is fullest in one direction.
func (v *view) fullest() (most *nic, share float64, sends bool) {
	for _, n := range v.nics {
		if s, tx, ok := n.wire(v.Seconds); ok && s > share {
			most, share, sends = n, s, tx
		}
	}
	return most, share, sends
}

// shaped returns a shaper that sends at its rate and holds packets back.
func (v *view) shaped() *qdisc {
	for i := range v.Interfaces {
		for _, q := range v.qdiscsOf(v.Interfaces[i].Name) {
			if q.rate > 0 && q.bits >= linkFull*float64(q.rate) && q.Overlimits > 0 {
				return &q
			}
		}
	}
	return nil
}

// presumedShaper returns a shaper that seems to be at its rate, which is not known.
func (v *view) presumedShaper() *qdisc {
	for i := range v.Interfaces {
		all := v.qdiscsOf(v.Interfaces[i].Name)
		if k := slices.IndexFunc(all, func(q qdisc) bool { return q.presumed() }); k >= 0 {
			return &all[k]
		}
	}
	return nil
}

// idle reports whether packets take less than a twentieth of every core and every link.
func (v *view) idle() bool {
	if c := v.busiestCore(); c != nil && c.network() >= 0.05 && !v.bystander() && !(c.busy < half && v.trickle()) {
		return false
	}
	_, share, _ := v.fullest()
	return share < 0.05
}

// trickle reports whether so few packets come and go that nothing here could be at its limit,
// whatever each of them costs: the interrupts of a card on USB alone take some percent of a
// small core.
func (v *view) trickle() bool {
	const idle = 200 // packets a second
	var all uint64
	for _, n := range v.nics {
		if !n.counted {
			return false
		}
		all += max(n.link.RxPackets, n.link.TxPackets)
	}
	return len(v.nics) > 0 && float64(all)/v.Seconds < idle
}

// busiestCore returns the core that spends the most time on packets.
func (v *view) busiestCore() (most *core) {
	for _, c := range v.cores {
		if most == nil || c.network() > most.network() {
			most = c
		}
	}
	return most
}

// busiest says how far cores and links are from their limits.
func (v *view) busiest() string {
	var parts []string
	if v.bystander() {
		parts = append(parts, "hardly a packet came into this network namespace")
	} else if c := v.busiestCore(); c != nil {
		parts = append(parts, fmt.Sprintf("packets take at most %s of a core (%s)", percent(c.network()), c.name()))
	}
	if n, share, _ := v.fullest(); n != nil && share < linkFull {
		parts = append(parts, fmt.Sprintf("the fullest link, %s, is %s used", n.Name, percent(share)))
	}
	var programs, kernel []*core
	for _, c := range v.cores {
		switch {
		case v.bystander() || c.busy < full || c.forwards():
		case c.inKernel():
			kernel = append(kernel, c)
		default:
			programs = append(programs, c)
		}
	}
	if len(programs) > 0 {
		parts = append(parts, "programs fill "+cpuNames(programs))
	}
	if len(kernel) > 0 {
		parts = append(parts, "the kernel's threads fill "+cpuNames(kernel))
	}
	return strings.Join(parts, ", ")
}
