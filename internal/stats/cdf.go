package stats

import "slices"

// Point is a point of a cumulative distribution: Share of the values are at most Value.
type Point struct {
	Value float64 `json:"value"`
	Share float64 `json:"share"` // 0 to 1
}

// CDF returns the cumulative distribution of the values with at most the given number of
// points (at least two), including the smallest and the largest value.
func (s Sample) CDF(points int) []Point {
	if len(s) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(s))
	points = min(max(points, 2), len(sorted))
	cdf := make([]Point, 0, points)
	for i := range points {
		at := len(sorted) - 1
		if points > 1 {
			at = i * (len(sorted) - 1) / (points - 1)
		}
		// Equal values are one step. Its share is that of its upper end.
		for at+1 < len(sorted) && sorted[at+1] == sorted[at] {
			at++
		}
		p := Point{sorted[at], float64(at+1) / float64(len(sorted))}
		if n := len(cdf); n == 0 || cdf[n-1] != p {
			cdf = append(cdf, p)
		}
	}
	return cdf
}

// AtMost returns the share of the values (0 to 1) that are at most a limit, or 0 if
// nothing was measured.
func (s Sample) AtMost(limit float64) float64 {
	if len(s) == 0 {
		return 0
	}
	n := 0
	for _, v := range s {
		if v <= limit {
			n++
		}
	}
	return float64(n) / float64(len(s))
}
