package stats

import (
	"cmp"
	"math"
	"slices"
)

// RankTest is the result of a Mann-Whitney test.
type RankTest struct {
	// Larger is the probability that a value of the second sample is larger than one
	// of the first; ties count half. It is 0.5 if nothing differs.
	Larger float64 `json:"larger"`
	P      float64 `json:"p"` // two-sided
	Exact  bool    `json:"exact"`
	Proven bool    `json:"proven"` // at 95 %, as if this were the only comparison
}

// exactRanks is the largest number of values for which all orders are counted. Above it a
// normal distribution is assumed.
const exactRanks = 40

// MannWhitney tests whether values of one sample tend to be larger than those of the
// other, whatever their distribution. Times and latencies need it, because a few of them
// are far from all others. An empty sample, or one with a NaN, proves nothing.
func MannWhitney(a, b Sample) RankTest {
	if len(a) == 0 || len(b) == 0 || slices.ContainsFunc(slices.Concat(a, b), math.IsNaN) {
		return RankTest{Larger: 0.5, P: 1}
	}
	ranks, ties := doubleRanks(a, b)
	sum := 0
	for _, r := range ranks[len(a):] {
		sum += r
	}
	na, nb := float64(len(a)), float64(len(b))
	u := float64(sum)/2 - nb*(nb+1)/2
	t := RankTest{Larger: u / (na * nb), Exact: len(ranks) <= exactRanks}
	if t.Exact {
		t.P = exactP(ranks, len(b), sum)
	} else {
		t.P = normalP(u, na, nb, ties)
	}
	t.Proven = t.P <= 1-Confidence
	return t
}

// doubleRanks returns twice the ranks of all values, so that the mean rank of equal
// values is a whole number. ties is the sum of t³-t over groups of t equal values.
func doubleRanks(a, b Sample) (ranks []int, ties float64) {
	all := slices.Concat(a, b)
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(all[i], all[j]) })
	ranks = make([]int, len(all))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && all[order[to]] == all[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = from + 1 + to
		}
		n := float64(to - from)
		ties += n*n*n - n
		from = to
	}
	return ranks, ties
}

// exactP returns the share of all ways to choose n of the ranks whose sum is at least as
// far from the mean as the one found.
func exactP(ranks []int, n, found int) float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	ways := make([][]float64, n+1) // by number chosen and sum
	for i := range ways {
		ways[i] = make([]float64, total+1)
	}
	ways[0][0] = 1
	for _, r := range ranks {
		for k := n; k >= 1; k-- {
			for sum := total; sum >= r; sum-- {
				ways[k][sum] += ways[k-1][sum-r]
			}
		}
	}
	mean := float64(total) * float64(n) / float64(len(ranks))
	far, all := 0.0, 0.0
	for sum, w := range ways[n] {
		all += w
		if math.Abs(float64(sum)-mean) >= math.Abs(float64(found)-mean)-1e-9 {
			far += w
		}
	}
	return far / all
}

// normalP assumes that U is normally distributed. It corrects the variance for ties, and
// for continuity by half of the smallest step.
func normalP(u, na, nb, ties float64) float64 {
	n := na + nb
	variance := na * nb / 12 * (n + 1 - ties/(n*(n-1)))
	if variance <= 0 {
		return 1
	}
	z := max(0, math.Abs(u-na*nb/2)-0.5) / math.Sqrt(variance)
	return 2 * normalTail(z)
}
