package stats

import "math"

// Verdict is the answer to whether two things are the same but for a margin.
// That no difference is proven is no proof that there is none: a run that could
// not have seen one proves neither, and its verdict is [Undecided].
type Verdict string

// Verdicts.
const (
	Different Verdict = "different" // proven, and it may be more than the margin
	Equal     Verdict = "equal"     // proven: what difference there may be is within the margin
	Undecided Verdict = "undecided" // neither is proven; [Comparison.Detectable] is what would have been
)

// Decide tells whether the two that were compared are the same up to a margin, a
// share of the first mean above 0. They are if the whole interval of the
// difference is within the margin: two one-sided tests (Schuirmann 1987), each
// at 97.5 %, so that the interval which decides is the one that is shown. A
// difference that is proven, but to be within the margin, is none that counts.
func (c Comparison) Decide(margin float64) Verdict {
	switch {
	case c.Bound() <= margin:
		return Equal
	case c.Proven:
		return Different
	}
	return Undecided
}

// Bound is the smallest margin within which the two are proven to be equal, a
// share of the first mean: the end of the interval that is farther from 0.
// Infinite with too few runs.
func (c Comparison) Bound() float64 { return math.Abs(c.Relative) + c.RelativeInterval }
