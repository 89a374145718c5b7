package stats

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// ministat prints for its own example at 80 %: 240 ± 212.215, 80 % ± 70.7384 %. The same
// standard error gives the interval at 95 %.
func TestCompareMinistat(t *testing.T) {
	c := Compare(iguana, chameleon)
	if c.Test != Student || c.Proven || c.Difference != 240 || math.Abs(c.Relative-0.8) > 1e-12 {
		t.Errorf("%+v", c)
	}
	narrower := StudentQuantile(0.9, 10) / StudentQuantile(0.975, 10)
	if got := c.Interval * narrower; math.Abs(got-212.215) > 0.05 {
		t.Errorf("at 80 %% ± %.3f, ministat says 212.215", got)
	}
	if got := c.RelativeInterval * narrower * 100; math.Abs(got-70.7384) > 0.02 {
		t.Errorf("at 80 %% ± %.4f %%, ministat says 70.7384 %%", got)
	}
}

// Welch's well-known example 3: t = -2.22, 24.99 degrees of freedom, p = 0.036 (Student's
// would be 0.01).
func TestCompareWelch(t *testing.T) {
	a := Sample{19.8, 20.4, 19.6, 17.8, 18.5, 18.9, 18.3, 18.9, 19.5, 22.0}
	b := Sample{28.2, 26.6, 20.1, 23.3, 25.2, 22.1, 17.7, 27.6, 20.6, 13.7, 23.2, 17.5, 20.6, 18.0, 23.9, 21.6, 24.3, 20.4, 24.0, 13.2}
	c := Compare(a, b)
	if c.Test != Welch || !c.Proven || math.Abs(c.P-0.0359) > 2e-4 {
		t.Errorf("%+v", c)
	}
}

func TestCompareEdges(t *testing.T) {
	for _, c := range []struct {
		name   string
		a, b   Sample
		test   string
		proven bool
	}{
		{"nothing", nil, nil, TooFew, false},
		{"two runs", Sample{1, 1}, Sample{9, 9, 9}, TooFew, false},
		{"equal without spread", Sample{2, 2, 2}, Sample{2, 2, 2}, Student, false},
		{"different without spread", Sample{2, 2, 2}, Sample{3, 3, 3}, Student, true},
		{"from nothing", Sample{0, 0, 0}, Sample{3, 4, 3}, Welch, true},
	} {
		got := Compare(c.a, c.b)
		if got.Test != c.test || got.Proven != c.proven {
			t.Errorf("%s: %+v", c.name, got)
		}
		b, err := json.Marshal(got)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.test == TooFew && !strings.Contains(string(b), `"interval":null`) {
			t.Errorf("%s: %s", c.name, b)
		}
	}
}

const simulations = 1000

// A noise draws the result of one run whose true value is 100.
type noise func(*rand.Rand) float64

func normal(deviation float64) noise {
	return func(r *rand.Rand) float64 { return 100 + deviation*r.NormFloat64() }
}

// lognormal has median 100 and a long tail, as times have.
func lognormal(sigma float64) noise {
	return func(r *rand.Rand) float64 { return 100 * math.Exp(sigma*r.NormFloat64()) }
}

func draw(r *rand.Rand, n int, of noise, factor float64) Sample {
	s := make(Sample, n)
	for i := range s {
		s[i] = of(r) * factor
	}
	return s
}

// proven returns the share of simulated comparisons that prove a difference.
func proven(na, nb int, a, b noise, factor float64) float64 {
	r := rand.New(rand.NewPCG(1, 2))
	n := 0
	for range simulations {
		if Compare(draw(r, na, a, 1), draw(r, nb, b, factor)).Proven {
			n++
		}
	}
	return float64(n) / simulations
}

// If nothing differs, about one in twenty comparisons may claim a difference: 0.05 with
// 1,000 runs has a standard deviation of 0.007.
func TestFalsePositives(t *testing.T) {
	for _, c := range []struct {
		name   string
		na, nb int
		a, b   noise
		most   float64
	}{
		{"normal", 5, 5, normal(3), normal(3), 0.07},
		{"normal, many", 30, 30, normal(3), normal(3), 0.07},
		{"lognormal", 5, 5, lognormal(0.1), lognormal(0.1), 0.07},
		{"lognormal, wide", 8, 8, lognormal(0.5), lognormal(0.5), 0.07},
		{"unequal variances", 8, 8, normal(1), normal(6), 0.07},
		{"unequal variances, the few vary more", 20, 5, normal(1), normal(6), 0.07},
		{"unequal variances, the few vary less", 5, 20, normal(1), normal(6), 0.07},
		{"variances that may or may not be pooled", 15, 5, normal(3), normal(6), 0.07},
		{"the same, as many runs", 8, 8, normal(3), normal(6), 0.07},
	} {
		got := proven(c.na, c.nb, c.a, c.b, 1)
		t.Logf("%s: %.1f %% false positives", c.name, got*100)
		if got > c.most || got < 0.01 {
			t.Errorf("%s: %.1f %% false positives, want 1 to %.0f %%", c.name, got*100, c.most*100)
		}
	}
}

// Four of five runs show a true effect of the detectable size. Nearly all show one twice
// as large.
func TestPower(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		a, b noise
		sd   float64 // of the difference of the means
	}{
		{"normal", 5, normal(3), normal(3), 3 * math.Sqrt(2.0/5)},
		{"normal, 10 runs", 10, normal(3), normal(3), 3 * math.Sqrt(2.0/10)},
		{"lognormal", 8, lognormal(0.05), lognormal(0.05), 5 * math.Sqrt(2.0/8)},
	} {
		df := float64(2*c.n - 2)
		detectable := (StudentQuantile(0.975, df) + StudentQuantile(power, df)) * c.sd / 100
		at, twice := proven(c.n, c.n, c.a, c.b, 1+detectable), proven(c.n, c.n, c.a, c.b, 1+2*detectable)
		t.Logf("%s: %.1f %% is proven by %.1f %%, %.1f %% by %.1f %%", c.name, detectable*100, at*100, 2*detectable*100, twice*100)
		if at < 0.70 || at > 0.90 || twice < 0.98 {
			t.Errorf("%s: an effect of %.1f %% is proven by %.1f %%, of %.1f %% by %.1f %%", c.name, detectable*100, at*100,
				2*detectable*100, twice*100)
		}
	}
}

// The median of what runs report as detectable is what theory says.
func TestDetectable(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var said Sample
	for range simulations {
		said = append(said, Compare(draw(r, 5, normal(3), 1), draw(r, 5, normal(3), 1)).Detectable)
	}
	want := (StudentQuantile(0.975, 8) + StudentQuantile(power, 8)) * 3 * math.Sqrt(2.0/5) / 100
	if got := said.Median(); math.Abs(got/want-1) > 0.1 {
		t.Errorf("detectable: %.4f in the middle, want %.4f", got, want)
	}
}

// The machine becomes 15 % slower during the measurement. Measured one after the other,
// the second is slower. Measured in turns, nothing is proven, because nothing differs.
func TestInterleavingRemovesDrift(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const runs = 8
	blocks, inTurn := 0, 0
	for range simulations {
		at := 0
		measure := func() float64 {
			at++
			return normal(2)(r) * (1 - 0.15*float64(at)/(2*runs))
		}
		apart := map[string]Sample{}
		for _, name := range []string{"a", "b"} {
			for range runs {
				apart[name] = append(apart[name], measure())
			}
		}
		at = 0
		mixed := map[string]Sample{}
		for _, name := range interleave(r.Shuffle, runs, []string{"a", "b"}) {
			mixed[name] = append(mixed[name], measure())
		}
		if Compare(apart["a"], apart["b"]).Proven {
			blocks++
		}
		if Compare(mixed["a"], mixed["b"]).Proven {
			inTurn++
		}
	}
	t.Logf("false positives: %.1f %% in blocks, %.1f %% in turn", float64(blocks)/10, float64(inTurn)/10)
	if blocks < 700 || inTurn > 50 {
		t.Errorf("false positives: %d of %d in blocks, %d in turn", blocks, simulations, inTurn)
	}
}

// If values do not vary at all, a difference is certain, whatever the numbers of runs.
func TestCompareWithoutVariance(t *testing.T) {
	c := Compare(Sample{0, 0, 0, 0, 0, 0}, Sample{1, 1, 1})
	if !c.Proven || c.Interval != 0 {
		t.Errorf("%+v", c)
	}
	if c := Compare(Sample{2, 2, 2, 2, 2, 2}, Sample{2, 2, 2}); c.Proven || c.Interval != 0 || c.P != 1 {
		t.Errorf("of the same: %+v", c)
	}
}
