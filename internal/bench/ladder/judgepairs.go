package ladder

import (
	"fmt"
	"slices"

	"weir/internal/stats"
	"weir/internal/units"
)

const (
	// sameSum is how far the sum of two pairs may differ from the rate of one, as a
	// share, and still count as equal.
	sameSum = 0.15
	// evenSplit is how far the share of a pair may differ from a half.
	evenSplit = 0.1
	// noFaster is how far the pairs' rate may be below that without a firewall, as a
	// share, if the hosts are the limit.
	noFaster = 0.1
)

// combined returns a figure of both pairs for each run.
func (f *pairFigures) combined(of func(first, second float64) float64) stats.Sample {
	all := make(stats.Sample, len(f.first))
	for i := range all {
		all[i] = of(f.first[i], f.second[i])
	}
	return all
}

// sum adds the rates of two pairs in each run.
func (f *pairFigures) sum() stats.Sample {
	return f.combined(func(first, second float64) float64 { return first + second })
}

// shares returns the first pair's share in each run.
func (f *pairFigures) shares() stats.Sample {
	return f.combined(func(first, second float64) float64 { return first / (first + second) })
}

// even reports whether both pairs had about the same rate. It compares the first pair's
// shares with a half that has no spread, which is a one-sample test.
func (f *pairFigures) even() stats.Verdict {
	shares := f.shares()
	return stats.Compare(slices.Repeat(stats.Sample{0.5}, len(shares)), shares).Decide(evenSplit / 0.5)
}

// verdict says what limits two pairs. It uses what they carry together, what one carries
// alone, and what the same two carry on the direct wire (nil: not measured). It concludes
// nothing that the runs cannot prove.
func (f *pairFigures) verdict(direct *pairFigures) string {
	both := stats.Compare(f.alone, f.sum())
	together := both.Decide(sameSum)
	times := units.Digits(1+both.Relative, 2)
	switch {
	case together == stats.Different && both.Relative > sameSum:
		return fmt.Sprintf("two pairs carry %s times what one does: one connection was held back by its hosts or by one core, not by the firewall", times)
	case direct == nil:
		return "not decided: without the direct wire the hosts cannot be told from the firewall"
	}
	hosts := within(direct.sum(), f.sum(), noFaster)
	switch {
	case hosts == asFast:
		return "no more than the same pairs carry without a firewall: the hosts are the limit"
	case hosts == undecided:
		return "not decided: the runs spread too much to tell whether the same pairs carry more without a firewall"
	case together == stats.Different && both.Relative < -sameSum:
		return fmt.Sprintf("two pairs carry less than one (%s of it): they hinder each other", times)
	case together != stats.Equal:
		return fmt.Sprintf("not decided: two pairs carry %s times what one does, but the runs spread too much to call that the same (within %.0f %%) or not", times, sameSum*100)
	}
	return f.sharing()
}

// sharing is the verdict on pairs that the firewall limits to the rate of one.
func (f *pairFigures) sharing() string {
	switch f.even() {
	case stats.Equal:
		return "an even split of the single rate: the firewall is the limit"
	case stats.Different:
		share := f.shares().Mean() * 100
		return fmt.Sprintf("the single rate, split %.0f : %.0f: the firewall is the limit, and does not share it evenly", share, 100-share)
	}
	return "the single rate: the firewall is the limit; whether it shares it evenly is not decided"
}
