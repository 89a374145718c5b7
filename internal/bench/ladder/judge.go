package ladder

import (
	"fmt"
	"math"

	"weir/internal/stats"
	"weir/internal/units"
)

const (
	// tie is the difference, as a share, up to which two rates count as equal.
	tie = 0.05
	// full is the share of a core above which the core limits the program on it.
	full = 0.95
)

// percent writes a difference with its sign: "+28 ± 9 %", or that none is proven.
func percent(c stats.Comparison) string {
	switch {
	case c.Test == stats.TooFew:
		return "too few runs"
	case !c.Proven:
		return fmt.Sprintf("none proven (± %s %%)", units.Digits(c.RelativeInterval*100, 2))
	}
	sign := "+"
	if c.Relative < 0 {
		sign = "−"
	}
	return fmt.Sprintf("%s%s ± %s %%", sign, units.Digits(math.Abs(c.Relative)*100, 2), units.Digits(c.RelativeInterval*100, 2))
}

// versus compares two samples in a sentence: the second against the first.
func versus(first, second string, a, b stats.Sample, verb, unit string) string {
	c := stats.Compare(a, b)
	figures := fmt.Sprintf("%s %s %s %s, %s %s", second, verb, units.Digits(b.Median(), 3), unit, first, units.Digits(a.Median(), 3))
	if c.Proven {
		return figures + ": " + percent(c) + "."
	}
	if c.Test == stats.TooFew {
		return figures + "; too few runs to tell whether they differ."
	}
	return fmt.Sprintf("%s: no difference is proven, and this run would have shown one of %s %%.", figures, units.Digits(c.Detectable*100, 2))
}

// standing compares a rate with that of the bare wire.
type standing int

const (
	undecided standing = iota // the run proves neither
	asFast                    // the hosts are the limit: the firewall's cost is not visible
	slower
)

// against compares traffic through a firewall with the bare wire. An unproven difference
// does not prove that they are equal.
func against(direct, through stats.Sample) standing { return within(direct, through, tie) }

// within is [against] with a margin given as a share.
func within(direct, through stats.Sample, margin float64) standing {
	c := stats.Compare(direct, through)
	switch verdict := c.Decide(margin); {
	case verdict == stats.Equal, verdict == stats.Different && c.Relative > 0:
		return asFast
	case verdict == stats.Different:
		return slower
	}
	return undecided
}

// limitOf names what limits the rate of a rung. core is the largest share of a core that
// one of the two programs took. NaN means that a program may use several.
func limitOf(r *rung, direct, rate stats.Sample, core float64) string {
	text := "this step"
	switch verdict := against(direct, rate); {
	case r.route == overLoopback || r.route == overWire:
		text = "the hosts"
	case len(direct) == 0:
		return "not known: the direct wire was not measured"
	case verdict == asFast:
		text = "the hosts: the direct wire carries no more"
	case verdict == undecided:
		text = "not decided: the runs spread too much to tell it from the direct wire"
	}
	if core >= full {
		text += fmt.Sprintf("; iperf3 has its core full (%.0f %%)", core*100)
	}
	return text
}
