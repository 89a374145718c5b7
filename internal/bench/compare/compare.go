package compare

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"weir/internal/bench/report"
	"weir/internal/stats"
)

// Verdicts on one measurement.
const (
	Regression  = "regression"  // proven, and worse
	Improvement = "improvement" // proven, and better
	Unproven    = "unproven"    // no difference proven
)

// Bound says which of two figures are only lower bounds, because the measuring program
// was the limit.
type Bound string

// Values of Bound.
const (
	Neither Bound = ""
	OnlyA   Bound = "a"
	OnlyB   Bound = "b"
)

// Result compares two reports.
type Result struct {
	A        *Source  `json:"a"`
	B        *Source  `json:"b"`
	Machines []string `json:"machines_differ,omitempty"` // what differs
	Rows     []Row    `json:"comparisons"`
	OnlyA    []string `json:"only_a,omitempty"` // measurements that the other lacks
	OnlyB    []string `json:"only_b,omitempty"`
	// Limited are measurements for which both reports have only a lower bound.
	Limited []string `json:"limited,omitempty"`
	// Untrusted are measurements whose own control failed in one of the reports.
	Untrusted []string `json:"untrusted,omitempty"`
	// Regressions counts those that hold after correction for all comparisons.
	Regressions int `json:"regressions"`
}

// Row compares one measurement.
type Row struct {
	Name   string       `json:"name"`
	Unit   string       `json:"unit"`
	Better string       `json:"better"`
	A      stats.Sample `json:"a"`
	B      stats.Sample `json:"b"`
	// Resolution is the larger of both, in the unit.
	Resolution float64          `json:"resolution,omitempty"`
	AtLeast    Bound            `json:"at_least,omitempty"`
	Verdict    string           `json:"verdict"`
	HolmP      float64          `json:"holm_p"` // P, corrected for the number of comparisons
	Test       stats.Comparison `json:"test"`
}

// errNothing says that two reports have nothing in common.
var errNothing = errors.New("the two reports have no measurement in common: make both with the same subcommand and options")

// Compare pairs the measurements of two reports by name and tests each pair. It rejects
// reports whose own control failed.
func Compare(a, b *Source) (*Result, error) {
	if err := errors.Join(a.trusted(), b.trusted()); err != nil {
		return nil, err
	}
	r := &Result{A: a, B: b, Machines: differences(a.Machine, b.Machine)}
	of, to := a.measurements, b.measurements
	if len(of) == 0 || len(to) == 0 {
		of, to = a.fromRows(), b.fromRows()
	}
	if err := r.pair(of, to); err != nil {
		return nil, err
	}
	switch {
	case len(r.Rows)+len(r.Limited) > 0:
	case len(r.Untrusted) > 0:
		return nil, fmt.Errorf("%s and %s prove nothing: of each measurement that both have, %w in one of them", a.Name, b.Name, ErrUntrusted)
	default:
		return nil, errNothing
	}
	r.decide()
	return r, nil
}

func (r *Result) pair(of, to []report.Measurement) error {
	second := map[string]report.Measurement{}
	for _, m := range to {
		second[m.Name] = m
	}
	for _, m := range of {
		n, found := second[m.Name]
		if !found {
			r.OnlyA = append(r.OnlyA, m.Name)
			continue
		}
		delete(second, m.Name)
		if m.Unit != n.Unit || m.Better != n.Better {
			return fmt.Errorf("%s: one report has it in %s (better: %s), the other in %s (%s)", m.Name, m.Unit, m.Better, n.Unit, n.Better)
		}
		if m.Untrusted || n.Untrusted {
			r.Untrusted = append(r.Untrusted, m.Name)
			continue
		}
		if m.AtLeast && n.AtLeast {
			r.Limited = append(r.Limited, m.Name)
			continue
		}
		r.Rows = append(r.Rows, newRow(&m, &n))
	}
	for _, m := range to {
		if _, left := second[m.Name]; left {
			r.OnlyB = append(r.OnlyB, m.Name)
		}
	}
	return nil
}

func newRow(m, n *report.Measurement) Row {
	row := Row{Name: m.Name, Unit: m.Unit, Better: m.Better, A: m.Runs, B: n.Runs, Resolution: max(m.Resolution, n.Resolution)}
	row.Test = stats.CompareResolved(m.Runs, n.Runs, row.Resolution)
	switch {
	case m.AtLeast:
		row.AtLeast = OnlyA
	case n.AtLeast:
		row.AtLeast = OnlyB
	}
	return row
}

// decide sets the verdicts. Twenty comparisons of equal things prove one difference at 95
// % each. Holm's correction limits the chance that any of them is wrong.
func (r *Result) decide() {
	order := make([]*Row, len(r.Rows))
	for i := range r.Rows {
		order[i] = &r.Rows[i]
	}
	slices.SortStableFunc(order, func(a, b *Row) int { return cmp.Compare(a.Test.P, b.Test.P) })
	least := 0.0
	for i, row := range order {
		least = max(least, min(1, row.Test.P*float64(len(order)-i)))
		row.HolmP = least
		row.Verdict = row.verdict()
		if row.Verdict == Regression {
			r.Regressions++
		}
	}
}

// Decided reports whether the runs of at least one measurement could have shown a
// difference.
func (r *Result) Decided() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Test.Test != stats.TooFew && !row.open() })
}

func (r *Row) verdict() string {
	worse := (r.Test.Difference < 0) == (r.Better == report.Higher)
	switch {
	case !r.Test.Proven || r.HolmP > 1-stats.Confidence || r.open():
		return Unproven
	case worse:
		return Regression
	}
	return Improvement
}

// open reports whether the difference could be the other way round, because the smaller
// figure is only a lower bound.
func (r *Row) open() bool {
	return r.AtLeast == OnlyA && r.Test.Difference > 0 || r.AtLeast == OnlyB && r.Test.Difference < 0
}
