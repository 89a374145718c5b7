package doctor

import (
	"fmt"
	"slices"
)

// Severity is how much a finding matters now.
type Severity uint8

// Severities, from the least. Their numbers order them; JSON has their names.
const (
	Notice   Severity = iota // worth knowing; costs nothing now
	Warning                  // hurts, or will when the load rises
	Critical                 // limits the router, or loses packets, now
)

var severities = [...]string{"notice", "warning", "critical"}

func (s Severity) String() string { return severities[s] }

// MarshalText makes the names appear in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText accepts the names.
func (s *Severity) UnmarshalText(text []byte) error {
	i := slices.Index(severities[:], string(text))
	if i < 0 {
		return fmt.Errorf("doctor: no severity is called %q", text)
	}
	*s = Severity(i)
	return nil
}

// Finding is something that a check found.
type Finding struct {
	Check    string   `json:"check"` // its ID
	Severity Severity `json:"severity"`
	Subject  string   `json:"subject,omitempty"` // an interface, "cpu3"; "": the box
	Says     string   `json:"says"`              // one sentence, without its full stop
	Evidence []string `json:"evidence,omitzero"`
	Remedies []Remedy `json:"remedies,omitzero"`
	Expect   string   `json:"expect,omitempty"` // what changes when the remedy is applied

	// because completes "cpu3 is full of softirq: ", where this finding is the
	// cause of the load of core; weight orders findings of one check.
	because string
	core    int
	weight  float64
	relief  bool // what relieves the full cores is a remedy for this, too
}

// Remedy is one way to mend what was found.
type Remedy struct {
	Command string `json:"command,omitempty"` // as typed by root; "": no command does it
	Text    string `json:"text"`              // what it does, or what to do
}

// Check is one thing that is looked at. Its page, which [Explain] gives, says why
// and how.
type Check struct {
	ID    string   `json:"id"`
	Title string   `json:"title"`
	Reads []string `json:"reads"` // of the snapshot, by the names of its form
	Worst Severity `json:"worst"` // that its findings may have
	run   func(*view) outcome
}

// State is how a check ended.
type State string

// How checks end.
const (
	Fine       State = "fine"
	Found      State = "found"
	Unreadable State = "not readable here"
	NotHere    State = "does not apply" // there is nothing of the kind
	Skipped    State = "skipped"
)

// outcome is what a check has to say. Findings may stand beside missing: part of
// it could be read.
type outcome struct {
	findings []Finding
	missing  []string // what it needs and is not there
	apart    []string // what it would have looked at besides, and is not there
	absent   string   // why there is nothing to look at
}

func (o *outcome) add(f Finding) { o.findings = append(o.findings, f) }

// lacks notes an input that is not there. The reason is added where it is known.
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

// Checks are all checks, in the order in which the verdict prefers their
// findings where these are equally severe: a cause before its effects.
func Checks() []Check {
	return slices.Concat(forwardingChecks(), coreChecks(), queueChecks(), lossChecks(), tableChecks(), deviceChecks(), powerChecks(), systemChecks(), foreignChecks())
}
