package doctor

import (
	"fmt"
	"slices"
)

// Severity is how much a finding matters now.
type Severity uint8

// Severities in rising order. Their numbers sort them; JSON has their names.
const (
	Notice   Severity = iota // worth knowing; costs nothing now
	Warning                  // hurts now, or will under more load
	Critical                 // limits the router, or loses packets, now
)

var severities = [...]string{"notice", "warning", "critical"}

func (s Severity) String() string { return severities[s] }

// MarshalText returns the severity's name for JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a severity's name.
func (s *Severity) UnmarshalText(text []byte) error {
	i := slices.Index(severities[:], string(text))
	if i < 0 {
		return fmt.Errorf("doctor: no severity is called %q", text)
	}
	*s = Severity(i)
	return nil
}

// Finding is a problem, or a fact worth knowing, that a check found.
type Finding struct {
	Check    string   `json:"check"` // ID of the check
	Severity Severity `json:"severity"`
	Subject  string   `json:"subject,omitempty"` // an interface or a core ("cpu3"); "": the whole box
	Says     string   `json:"says"`              // one sentence, without the full stop
	Evidence []string `json:"evidence,omitzero"`
	Remedies []Remedy `json:"remedies,omitzero"`
	// See names findings above, of which a remedy is one of this finding's, too.
	See    []string `json:"see,omitempty"`
	Expect string   `json:"expect,omitempty"` // what the remedy changes
	// Because is the check that explains this finding, and whose finding stands above
	// it; "": none does.
	Because string `json:"explained_by,omitempty"`

	// because completes "cpu3 is full of softirq: " if this finding causes the load
	// of core. weight orders findings of one check. kind tells a check's findings apart
	// in [Graph].
	because string
	plain   string // what it says, if not Says, when another finding explains it
	core    int
	cores   []int // all cores that it is about; nil: core alone
	kind    string
	bites   bool // it explains what the graph says that it may
	weight  float64
	relief  bool // a remedy for full cores also solves this
}

// on names the core that a finding is about, if it is known.
func (f *Finding) on(c *core) {
	if c != nil {
		f.core = c.ID
		f.Evidence = append(f.Evidence, c.line())
	}
}

// Remedy is one way to solve the problem.
type Remedy struct {
	Command string `json:"command,omitempty"` // what root types; "": no command does it
	Text    string `json:"text"`              // what it does, or what to do
}

// Check is one check of the box. Its page, returned by [Explain], says why and how.
type Check struct {
	ID    string   `json:"id"`
	Title string   `json:"title"`
	Reads []string `json:"reads"` // names of the snapshot's fields it reads
	Worst Severity `json:"worst"` // highest severity of its findings
	needs []need   // without these there is nothing to judge
	run   func(*view) outcome
}

// A need returns true if a check has nothing to judge, and notes why.
type need func(*view, *outcome) bool

// lacking returns the need of an input.
func lacking(what string, lacks func(*view) bool) need {
	return func(v *view, o *outcome) bool {
		if lacks(v) {
			o.lacks(v, what)
			return true
		}
		return false
	}
}

// Inputs that checks need.
var (
	noInterfaces      = lacking("interfaces", func(v *view) bool { return v.Interfaces == nil })
	noRoutesOrSysctls = lacking("routes", func(v *view) bool { return v.Routes == nil || v.Sysctls == nil })
	noMarkRules       = lacking("mark_rules", func(v *view) bool { return v.MarkRules == nil })
	noPolicies        = lacking("ipsec_policies", func(v *view) bool { return v.Policies == nil })
	noQdiscs          = lacking("qdiscs", func(v *view) bool { return !v.sampled || v.After.Qdiscs == nil || v.Before.Qdiscs == nil })
	noSNMP            = lacking("snmp", func(v *view) bool { return !v.sampled || v.After.SNMP == nil || v.Before.SNMP == nil })
	noCPUs            = lacking("cpus", func(v *view) bool { return len(v.CPUs) == 0 })
	noMitigations     = lacking("host.mitigations", func(v *view) bool { return v.Host.Mitigations == nil })
	noSysctls         = lacking("sysctls", func(v *view) bool { return v.Sysctls == nil })
	noServices        = lacking("services", func(v *view) bool { return v.Services == nil })
	noTimes           = lacking("seconds and wished_seconds", func(v *view) bool { return v.Wished <= 0 || v.Seconds <= 0 })
	noConntrack       = lacking("conntrack", func(v *view) bool { return v.After == nil || v.After.Conntrack == nil })
	noSoftnet         = lacking("softnet", func(v *view) bool { return len(v.After.Softnet) == 0 || len(v.Before.Softnet) == 0 })
	noStateLimit      = lacking("weir.state_limit", func(v *view) bool { return v.Weir.StateLimit <= 0 })
	noNeighbours      = lacking("neighbours", func(v *view) bool { return v.After == nil || v.After.Neighbours == nil })
)

// eachNIC runs a check of every device that is up.
func eachNIC(check func(*view, *nic, *outcome)) func(*view) outcome {
	return func(v *view) (o outcome) {
		for _, n := range v.nics {
			check(v, n, &o)
		}
		return o
	}
}

// judge runs the check, unless it lacks what it needs.
func (c *Check) judge(v *view) outcome {
	var o outcome
	if o.absent = v.elsewhere(c.ID); o.absent != "" {
		return o
	}
	for _, lacks := range c.needs {
		if lacks(v, &o) {
			return o
		}
	}
	return c.run(v)
}

// State is how a check ended.
type State string

// States that a check ends in.
const (
	Fine       State = "fine"
	Found      State = "found"
	Unreadable State = "not readable here"
	NotHere    State = "does not apply" // the box has nothing to check
	Skipped    State = "skipped"
)

// outcome is the result of a check. It may have both findings and missing inputs, if only
// part of the input was readable.
type outcome struct {
	findings []Finding
	missing  []string // inputs it needs, but could not read
	apart    []string // further inputs it could not read; it works without them
	absent   string   // why there is nothing to check
}

func (o *outcome) add(f Finding) { o.findings = append(o.findings, f) }

// lacks notes a missing input, with the reason if it is known.
func (o *outcome) lacks(v *view, what string) {
	if why := v.Unreadable[what]; why != "" {
		what += ": " + why
	}
	if !slices.Contains(o.missing, what) {
		o.missing = append(o.missing, what)
	}
}

func (o *outcome) state() State {
	switch {
	case len(o.findings) > 0:
		return Found
	case len(o.missing) > 0:
		return Unreadable
	case o.absent != "":
		return NotHere
	}
	return Fine
}

// Checks returns all checks. If findings are equally severe, the verdict prefers those of
// earlier checks: a cause comes before its effects.
func Checks() []Check {
	return slices.Concat(forwardingChecks(), coreChecks(), queueChecks(), lossChecks(), tableChecks(), deviceChecks(), stackChecks(), powerChecks(), systemChecks(), foreignChecks())
}
