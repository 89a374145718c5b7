package stats

import (
	"encoding/json"
	"math"
)

const (
	// Confidence of verdicts. One in twenty runs shows a difference that does not
	// exist.
	Confidence = 0.95
	// power is the probability that a run shows an effect of the detectable size.
	power = 0.8
	// leastRuns is the minimum number of runs for a test, as in ministat.
	leastRuns = 3
	// alike and balanced are the largest quotients of two variances, and of two
	// numbers of runs, for which variances are pooled. Pooling is robust if the
	// numbers are similar. With 15 runs, and 5 of twice the deviation, 11 % of
	// comparisons would prove a difference that does not exist.
	alike    = 4
	balanced = 1.5
)

// Tests that a [Comparison] can use.
const (
	Student = "student" // pooled variance, as ministat does
	Welch   = "welch"   // variances that differ, or may and the numbers of runs do
	TooFew  = "too few runs"
)

// Comparison is what two samples say about the difference between them, the second
// compared with the first.
type Comparison struct {
	Test             string
	Difference       float64 // of the means, in the unit of the samples
	Interval         float64 // the true difference is within ± this, at 95 %; infinite with too few runs
	Relative         float64 // Difference as a share of the first mean
	RelativeInterval float64
	P                float64 // of a difference this large where there is none
	Proven           bool    // at 95 %, as if this were the only comparison
	// Detectable is the smallest true effect, as a share of the first mean, that four
	// of five such runs would have proven.
	Detectable float64
}

// Compare tests whether two samples of independent runs differ.
func Compare(a, b Sample) Comparison { return CompareResolved(a, b, 0) }

// CompareResolved is [Compare] for values found in steps, for example by a search.
// resolution is the step, in the unit of the samples. Equal results then only mean that
// both are on the same step, so the interval is never smaller than a step.
func CompareResolved(a, b Sample, resolution float64) Comparison {
	c := Comparison{Test: TooFew, Difference: b.Mean() - a.Mean(), Interval: math.Inf(1), P: 1,
		RelativeInterval: math.Inf(1), Detectable: math.Inf(1)}
	c.Relative = share(c.Difference, a.Mean())
	if len(a) < leastRuns || len(b) < leastRuns {
		return c
	}
	test, deviation, df := standardError(a, b)
	c.Test = test
	quantile := StudentQuantile(1-(1-Confidence)/2, df)
	deviation = max(deviation, resolution/quantile)
	c.Interval = quantile * deviation
	c.RelativeInterval = share(c.Interval, math.Abs(a.Mean()))
	c.Detectable = share((quantile+StudentQuantile(power, df))*deviation, math.Abs(a.Mean()))
	c.Proven = math.Abs(c.Difference) > c.Interval
	if c.Difference != 0 {
		c.P = 2 * studentTail(math.Abs(c.Difference)/deviation, df)
	}
	return c
}

// standardError returns the standard error of the difference of the means, and its
// degrees of freedom.
func standardError(a, b Sample) (test string, deviation, df float64) {
	na, nb := float64(len(a)), float64(len(b))
	va, vb := a.Variance(), b.Variance()
	same := va == 0 && vb == 0 // Welch has no degrees of freedom for what does not vary
	if same || max(va, vb) <= alike*min(va, vb) && max(na, nb) <= balanced*min(na, nb) {
		df = na + nb - 2
		pooled := ((na-1)*va + (nb-1)*vb) / df
		return Student, math.Sqrt(pooled * (1/na + 1/nb)), df
	}
	ea, eb := va/na, vb/nb
	df = (ea + eb) * (ea + eb) / (ea*ea/(na-1) + eb*eb/(nb-1)) // Welch-Satterthwaite
	return Welch, math.Sqrt(ea + eb), df
}

// share returns a part of a whole. Of 0 it is infinite, or 0 for 0.
func share(part, whole float64) float64 {
	if part == 0 {
		return 0
	}
	return part / whole
}

// MarshalJSON writes null for what too few runs cannot show.
func (c Comparison) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Test             string   `json:"test"`
		Difference       *float64 `json:"difference"`
		Interval         *float64 `json:"interval"`
		Relative         *float64 `json:"relative"`
		RelativeInterval *float64 `json:"relative_interval"`
		P                float64  `json:"p"`
		Proven           bool     `json:"proven"`
		Detectable       *float64 `json:"detectable"`
	}{c.Test, finite(c.Difference), finite(c.Interval), finite(c.Relative), finite(c.RelativeInterval), c.P, c.Proven,
		finite(c.Detectable)})
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	v = Round(v)
	return &v
}
