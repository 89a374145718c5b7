package forward

import (
	"weir/internal/bench/traffic"
	"weir/internal/stats"
)

// Scaling compares what a path forwards on several cores with what it forwards on the
// fewest, in cases that differ in nothing else.
type Scaling struct {
	Path string `json:"path"`
	traffic.Case
	Than int               `json:"than"` // cores of the other case
	Mpps float64           `json:"mpps"` // the rate, divided by that of the other case
	Test *stats.Comparison `json:"test,omitempty"`
}

// scaling compares all cases that differ in their cores alone.
func (r *Report) scaling() (all []Scaling) {
	for _, c := range r.cases() {
		fewest := c
		for _, other := range r.cases() {
			if alike := other; alike.Cores < fewest.Cores {
				if alike.Cores = c.Cores; alike == c {
					fewest = other
				}
			}
		}
		if fewest == c {
			continue
		}
		for _, row := range r.rowsOf(c) {
			for _, base := range r.rowsOf(fewest) {
				if base.Path == row.Path {
					all = append(all, Scaling{Path: row.Path, Case: c, Than: fewest.Cores,
						Mpps: stats.Round(row.Mpps.Median() / base.Mpps.Median()), Test: tested(base.Mpps, row.Mpps)})
				}
			}
		}
	}
	return all
}
