package compare

import (
	"weir/internal/bench/report"
	"weir/internal/stats"
)

// Held is the verdict on a measurement that reached its recorded value.
const Held = "held"

// Against pairs recorded values by name with the values of the runs, one for each run. A
// value holds if one run is not below it by more than the margin, a share. It is a
// regression if the needed number of runs is below. Until then nothing is proven. OnlyA
// has recorded values that were not measured.
func Against(recorded, found []report.Measurement, margin float64, needed int) (*Result, error) {
	r := &Result{}
	if err := r.pair(recorded, found); err != nil {
		return nil, err
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Verdict = floor(row.A.Median()*(1-margin), row.B, needed)
		if row.Verdict == Regression {
			r.Regressions++
		}
	}
	return r, nil
}

func floor(least float64, found stats.Sample, needed int) string {
	switch {
	case len(found) > 0 && found.Max() >= least:
		return Held
	case len(found) >= needed:
		return Regression
	}
	return Unproven
}
