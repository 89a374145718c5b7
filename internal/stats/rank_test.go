package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestMannWhitneyExact checks values that can be counted: of the 70 ways to choose 4 of 8
// ranks, two are as extreme as the first four.
func TestMannWhitneyExact(t *testing.T) {
	for _, c := range []struct {
		a, b      Sample
		larger, p float64
	}{
		{Sample{1, 2, 3, 4}, Sample{5, 6, 7, 8}, 1, 2.0 / 70},
		{Sample{5, 6, 7, 8}, Sample{1, 2, 3, 4}, 0, 2.0 / 70},
		{Sample{1, 3}, Sample{2, 4}, 0.75, 4.0 / 6},
		{Sample{7, 7, 7}, Sample{7, 7}, 0.5, 1},
		// The twelve values of Mann and Whitney's tortoise and hare: U = 11 of 36.
		{Sample{1, 8, 9, 10, 11, 12}, Sample{2, 3, 4, 5, 6, 7}, 6.0 / 36, 0.0649},
	} {
		got := MannWhitney(c.a, c.b)
		if !got.Exact || math.Abs(got.Larger-c.larger) > 1e-9 || math.Abs(got.P-c.p) > 1e-4 {
			t.Errorf("%v, %v: %+v, want larger %.4f, p %.4f", c.a, c.b, got, c.larger, c.p)
		}
	}
	for _, b := range []Sample{nil, {1, math.NaN()}} {
		if got := MannWhitney(Sample{1, 2}, b); got.Proven || got.P != 1 {
			t.Errorf("%v: %+v", b, got)
		}
	}
}

// TestMannWhitneyNormal checks that the normal distribution is close to counting where
// both are possible.
func TestMannWhitneyNormal(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 50 {
		a, b := draw(r, 20, lognormal(0.3), 1), draw(r, 20, lognormal(0.3), 1.2)
		ranks, ties := doubleRanks(a, b)
		sum := 0
		for _, rank := range ranks[len(a):] {
			sum += rank
		}
		exact, approximate := exactP(ranks, 20, sum), normalP(float64(sum)/2-210, 20, 20, ties)
		if math.Abs(exact-approximate) > 0.01 {
			t.Errorf("p %.4f by counting, %.4f by the normal distribution", exact, approximate)
		}
	}
}

// TestMannWhitneyRates checks latencies with a heavy tail: at most one in twenty is
// wrongly called different, and a shift of a tenth is seen where means show nothing.
func TestMannWhitneyRates(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	heavy := func(r *rand.Rand) float64 {
		if r.IntN(50) == 0 {
			return 10_000 * r.Float64()
		}
		return lognormal(0.2)(r)
	}
	for _, n := range []int{8, 200} {
		same, shifted, means := 0, 0, 0
		for range simulations {
			a, b, c := draw(r, n, heavy, 1), draw(r, n, heavy, 1), draw(r, n, heavy, 1.1)
			for count, proven := range map[*int]bool{&same: MannWhitney(a, b).Proven, &shifted: MannWhitney(a, c).Proven,
				&means: Compare(a, c).Proven} {
				if proven {
					*count++
				}
			}
		}
		t.Logf("n %d: %d false positives, a tenth is seen by %d, by means %d", n, same, shifted, means)
		if same > 70 || n == 200 && (shifted < 950 || means > 200) {
			t.Errorf("n %d of %d: %d false positives, a tenth is seen by %d, by means %d", n, simulations, same, shifted, means)
		}
	}
}
