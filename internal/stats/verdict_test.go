package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// decidedShare returns the share of simulated comparisons that end with a verdict.
func decidedShare(want Verdict, n int, a, b noise, factor, margin float64) float64 {
	r := rand.New(rand.NewPCG(7, 8))
	hits := 0
	for range simulations {
		if Compare(draw(r, n, a, 1), draw(r, n, b, factor)).Decide(margin) == want {
			hits++
		}
	}
	return float64(hits) / simulations
}

// If the true difference is the margin, about one in forty comparisons may call the two
// equal: 0.025 with 1,000 runs has a standard deviation of 0.005. least is above 0 if runs
// are exact enough to err at all.
func TestFalseEquality(t *testing.T) {
	for _, c := range []struct {
		name           string
		n              int
		a, b           noise
		factor, margin float64
		least          float64
	}{
		{"5 runs, exact", 5, normal(1), normal(1), 1.05, 0.05, 0.01},
		{"5 runs, exact, less", 5, normal(1), normal(1), 0.95, 0.05, 0.01},
		{"30 runs", 30, normal(3), normal(3), 1.05, 0.05, 0.01},
		{"a wide margin", 10, normal(5), normal(5), 1.15, 0.15, 0.01},
		{"unequal variances", 8, normal(0.5), normal(2), 0.95, 0.05, 0.01},
		{"lognormal", 8, lognormal(0.02), lognormal(0.02), 1.05, 0.05, 0.01},
		{"5 runs that could not tell", 5, normal(10), normal(10), 1.05, 0.05, 0},
	} {
		got := decidedShare(Equal, c.n, c.a, c.b, c.factor, c.margin)
		t.Logf("%s: %.1f %% falsely equal", c.name, got*100)
		if got > 0.045 || got < c.least {
			t.Errorf("%s: %.1f %% falsely equal, want %.0f to 4.5 %%", c.name, got*100, c.least*100)
		}
	}
}

// TestDecide checks that exact runs prove that equal things are equal, that noisy runs of
// different things are undecided, and that a large effect is a difference.
func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name   string
		noise  noise
		factor float64
		want   Verdict
		least  float64
	}{
		{"equal, exact", normal(1), 1, Equal, 0.99},
		{"equal, too noisy", normal(10), 1, Undecided, 0.9},
		{"a fifth less, too noisy", normal(30), 0.8, Undecided, 0.8},
		{"a fifth less, exact", normal(1), 0.8, Different, 0.99},
		{"a real difference, but within the margin", normal(0.5), 1.02, Equal, 0.99},
	} {
		if got := decidedShare(c.want, 5, c.noise, c.noise, c.factor, 0.05); got < c.least {
			t.Errorf("%s: %s in %.1f %% of comparisons, want %.0f %%", c.name, c.want, got*100, c.least*100)
		}
	}
}

func TestDecideEdges(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name string
		a, b Sample
		want Verdict
	}{
		{"nothing", nil, nil, Undecided},
		{"two runs", Sample{1, 1}, Sample{1, 1}, Undecided},
		{"without spread", Sample{2, 2, 2}, Sample{2, 2, 2}, Equal},
		{"all nothing", Sample{0, 0, 0}, Sample{0, 0, 0}, Equal},
		{"from nothing", Sample{0, 0, 0}, Sample{3, 3, 3}, Different},
		{"no number", Sample{nan, 1, 1}, Sample{1, 1, 1}, Undecided},
	} {
		if got := Compare(c.a, c.b).Decide(0.05); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A result of a search is known to its step: equal results prove neither a smaller
// difference nor a narrower equality.
func TestCompareResolved(t *testing.T) {
	a, b := Sample{1000, 1000, 1000}, Sample{997, 997, 997}
	if c := Compare(a, b); !c.Proven {
		t.Errorf("exact values: %+v", c)
	}
	c := CompareResolved(a, b, 20)
	if c.Proven || math.Abs(c.Interval-20) > 1e-9 || c.P < 0.05 || c.Detectable < 0.02 {
		t.Errorf("in steps of 20: %+v", c)
	}
	if c.Decide(0.05) != Equal || c.Decide(0.01) != Undecided {
		t.Errorf("in steps of 20: equal within 5 %%: %s, within 1 %%: %s", c.Decide(0.05), c.Decide(0.01))
	}
	if c := CompareResolved(a, Sample{900, 900, 900}, 20); !c.Proven {
		t.Errorf("a tenth less: %+v", c)
	}
	noisy := Sample{900, 1000, 1100}
	if Compare(noisy, b).Interval != CompareResolved(noisy, b, 20).Interval {
		t.Error("runs that differ by more than a step have another interval")
	}
}
