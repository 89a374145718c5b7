package stats

import (
	"encoding/json"
	"math"
	"slices"
)

// Sample is the results of several runs of the same thing, in order.
type Sample []float64

// Median returns the middle value, or the mean of the two in the middle, or NaN if nothing
// was measured.
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

// Min returns the smallest value, or NaN if nothing was measured.
func (s Sample) Min() float64 { return s.extreme(slices.Min[[]float64]) }

// Max returns the largest value, or NaN if nothing was measured.
func (s Sample) Max() float64 { return s.extreme(slices.Max[[]float64]) }

func (s Sample) extreme(of func([]float64) float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return of(s)
}

// Mean returns the arithmetic mean, or NaN if nothing was measured.
func (s Sample) Mean() float64 {
	sum := 0.0
	for _, v := range s {
		sum += v
	}
	return sum / float64(len(s))
}

// Variance returns the estimated variance of the population (divided by n-1), or NaN for
// fewer than two runs.
func (s Sample) Variance() float64 {
	if len(s) < 2 {
		return math.NaN()
	}
	mean, sum := s.Mean(), 0.0
	for _, v := range s {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(len(s)-1)
}

// Quantile returns the value below which a share q (0 to 1) of the values is,
// interpolated linearly, or NaN if nothing was measured.
func (s Sample) Quantile(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	place := min(max(q, 0), 1) * float64(len(sorted)-1)
	low := int(place)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (place-float64(low))*(sorted[high]-sorted[low])
}

// Spread returns the distance from the smallest to the largest value, as a share of the
// median.
func (s Sample) Spread() float64 { return (s.Max() - s.Min()) / s.Median() }

// Difference returns the distance between the medians of two samples, as a share of the
// smaller one. It is 0 if both are 0, and infinite if one is. It does not depend on their
// order.
func Difference(a, b Sample) float64 {
	x, y := a.Median(), b.Median()
	if x == y {
		return 0
	}
	return math.Abs(x-y) / math.Min(x, y)
}

// MarshalJSON writes median, min, max and all runs.
func (s Sample) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Median float64   `json:"median"`
		Min    float64   `json:"min"`
		Max    float64   `json:"max"`
		Runs   []float64 `json:"runs"`
	}{Round(s.Median()), Round(s.Min()), Round(s.Max()), roundAll(s)})
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

// Round rounds to six digits, which is what a run can distinguish. NaN becomes 0.
func Round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

func roundAll(values []float64) []float64 {
	rounded := make([]float64, len(values))
	for i, v := range values {
		rounded[i] = Round(v)
	}
	return rounded
}
