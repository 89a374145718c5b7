package ladder

import (
	"fmt"

	"weir/internal/stats"
	"weir/internal/units"
)

const (
	// sameSum is how far the sum of two pairs may lie from the rate of one, as a
	// share, to be called the same.
	sameSum = 0.15
	// evenSplit is how far the share of a pair may lie from a half.
	evenSplit = 0.1
	// noFaster is how far the pairs' rate may lie below that without a firewall
	// for their hosts to be what holds them back, as a share.
	noFaster = 0.1
)

// sum adds what two pairs carried in each run.
func (f *pairFigures) sum() stats.Sample {
	total := make(stats.Sample, len(f.first))
	for i := range total {
		total[i] = f.first[i] + f.second[i]
	}
	return total
}

// shares are those of the first pair in each run.
func (f *pairFigures) shares() stats.Sample {
	shares := make(stats.Sample, len(f.first))
	for i := range shares {
		shares[i] = f.first[i] / (f.first[i] + f.second[i])
	}
	return shares
}

// even tells whether both pairs had about the same: it compares the first's
// shares with a half that does not spread, which is the test of one sample.
func (f *pairFigures) even() stats.Verdict {
	shares := f.shares()
	halves := make(stats.Sample, len(shares))
	for i := range halves {
		halves[i] = 0.5
	}
	return stats.Compare(halves, shares).Judge(evenSplit / 0.5)
}

// verdict says what holds two pairs back, from what they carry together, what
// one carries alone, and what the same two carry on the direct wire (nil: not
// measured). What the runs cannot prove is not concluded.
func (f *pairFigures) verdict(direct *pairFigures) string {
	both := stats.Compare(f.alone, f.sum())
	together := both.Judge(sameSum)
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

// sharing is the verdict on pairs that the firewall holds to the rate of one.
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
