package bench

import (
	"encoding/json"
	"math"
	"slices"
)

// Sample is what several runs of the same thing measured, in their order.
type Sample []float64

// Median is the middle value, or the mean of the two in the middle; NaN if
// nothing was measured.
func (s Sample) Median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// Min is the smallest value; NaN if nothing was measured.
func (s Sample) Min() float64 { return s.extreme(slices.Min[[]float64]) }

// Max is the largest value; NaN if nothing was measured.
func (s Sample) Max() float64 { return s.extreme(slices.Max[[]float64]) }

func (s Sample) extreme(of func([]float64) float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return of(s)
}

// Spread is the distance from the smallest to the largest value, as a share of
// the median.
func (s Sample) Spread() float64 { return (s.Max() - s.Min()) / s.Median() }

// Difference is how far the medians of two samples lie apart, as a share of
// the smaller one. It does not depend on their order.
func Difference(a, b Sample) float64 {
	x, y := a.Median(), b.Median()
	return math.Abs(x-y) / math.Min(x, y)
}

// MarshalJSON writes median, min, max and all runs.
func (s Sample) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Median float64   `json:"median"`
		Min    float64   `json:"min"`
		Max    float64   `json:"max"`
		Runs   []float64 `json:"runs"`
	}{round(s.Median()), round(s.Min()), round(s.Max()), roundAll(s)})
}

// UnmarshalJSON reads the runs; the rest follows from them.
func (s *Sample) UnmarshalJSON(b []byte) error {
	var v struct {
		Runs []float64 `json:"runs"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*s = v.Runs
	return nil
}

// round keeps the digits that a run can tell apart: six.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

func roundAll(values []float64) []float64 {
	rounded := make([]float64, len(values))
	for i, v := range values {
		rounded[i] = round(v)
	}
	return rounded
}
