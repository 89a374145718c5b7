package stats

import "math"

// Verdict says whether two things are equal within a margin. If no difference is proven,
// this does not prove equality. A run that could not have shown a difference proves
// neither, and its verdict is [Undecided].
type Verdict string

// Verdicts.
const (
	Different Verdict = "different" // proven, and it may be more than the margin
	Equal     Verdict = "equal"     // proven: any difference is within the margin
	Undecided Verdict = "undecided" // neither is proven; [Comparison.Detectable] says what would have been
)

// Decide says whether the two are equal within a margin, a share above 0 of the first
// mean. They are if the whole interval of the difference is within the margin. These are
// two one-sided tests (Schuirmann 1987), each at 97.5 %, so the deciding interval is the
// one that is shown. A proven difference within the margin does not count.
func (c Comparison) Decide(margin float64) Verdict {
	switch {
	case c.Bound() <= margin:
		return Equal
	case c.Proven:
		return Different
	}
	return Undecided
}

// Bound returns the smallest margin within which the two are proven equal, as a share of
// the first mean: the end of the interval that is farther from 0. It is infinite with too
// few runs.
func (c Comparison) Bound() float64 { return math.Abs(c.Relative) + c.RelativeInterval }
