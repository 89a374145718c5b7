package qos

import (
	"time"

	"weir/internal/stats"
)

const (
	// bin is the shortest time that is told apart.
	bin = 10 * time.Millisecond
	// short and long are the windows in which a rate is judged.
	short = 250 * time.Millisecond
	long  = 10 * time.Second
	// settled is how long connections may take to find their rate before they are
	// compared with each other, and before a window counts as too low.
	settled = 2 * time.Second
	// found is how long one connection may take until it has found its rate.
	found = 5 * time.Second
	// firstBytes are more than what iperf3 says before its data: the data have begun.
	firstBytes = 12_000
)

// series is the bytes of a line in each bin.
type series []float64

// bins returns how many bins a time has.
func bins(d time.Duration) int { return int(d / bin) }

// between returns a part of the series, as far as there is one.
func (s series) between(from, to time.Duration) series {
	a, b := min(bins(from), len(s)), min(bins(to), len(s))
	return s[a:max(a, b)]
}

// sum returns all bytes.
func (s series) sum() (total float64) {
	for _, v := range s {
		total += v
	}
	return total
}

// rate returns the mean in bit/s.
func (s series) rate() float64 {
	if len(s) == 0 {
		return 0
	}
	return s.sum() * 8 / (float64(len(s)) * bin.Seconds())
}

// windows returns the rates in bit/s of all windows of a length, one beginning in each bin.
// A series that is shorter is one window.
func (s series) windows(length time.Duration) (rates stats.Sample) {
	n := min(bins(length), len(s))
	if n == 0 {
		return nil
	}
	sum := s[:n].sum()
	per := 8 / (float64(n) * bin.Seconds())
	rates = append(rates, sum*per)
	for i := n; i < len(s); i++ {
		sum += s[i] - s[i-n]
		rates = append(rates, sum*per)
	}
	return rates
}

// parts returns the bytes in windows that follow each other, the last one only if it is
// whole.
func (s series) parts(length time.Duration) (sums []float64) {
	n := bins(length)
	for ; len(s) >= n; s = s[n:] {
		sums = append(sums, s[:n].sum())
	}
	return sums
}

// jain is the index of fairness of Jain, Chiu and Hawe: 1 if all have the same, 1/n if one
// has everything. Nothing at all is shared fairly.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, v := range shares {
		sum, squares = sum+v, squares+v*v
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// jainPer returns the mean of Jain's index over windows that follow each other.
func jainPer(flows []series, length time.Duration) float64 {
	var all stats.Sample
	parts := make([][]float64, len(flows))
	count := 0
	for i, f := range flows {
		parts[i] = f.parts(length)
		count = len(parts[i])
	}
	for w := range count {
		shares := make([]float64, len(flows))
		for i := range flows {
			shares[i] = parts[i][w]
		}
		all = append(all, jain(shares))
	}
	return all.Mean()
}

// grade is that of DSLReports for the milliseconds that a load adds to a round trip.
func grade(millis float64) string {
	for _, g := range []struct {
		below float64
		name  string
	}{{5, "A+"}, {30, "A"}, {60, "B"}, {200, "C"}, {400, "D"}} {
		if millis < g.below {
			return g.name
		}
	}
	return "F"
}
