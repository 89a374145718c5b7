package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Things that are slower by the same factors have no other difference left.
func TestLevelExact(t *testing.T) {
	got := Level([]Sample{{4, 2, 4, 8, 4}, {1, 0.5, 1, 2, 1}})
	for i, want := range []float64{4, 1} {
		for j, v := range got[i] {
			if math.Abs(v-want) > 1e-9 {
				t.Errorf("thing %d, turn %d: %g, want %g", i, j, v, want)
			}
		}
	}
	if Level(nil) != nil {
		t.Error("nothing has a level")
	}
}

// A turn in which another program disturbed one of four things keeps the values of the
// other three.
func TestLevelOneDisturbed(t *testing.T) {
	all := make([]Sample, 4)
	for i := range all {
		all[i] = Sample{10, 10, 10, 10, 10}
	}
	all[2][3] = 1
	got := Level(all)
	for i, s := range got {
		for j, v := range s {
			want := 10.0
			if i == 2 && j == 3 {
				want = 1
			}
			if math.Abs(v-want) > 1e-9 {
				t.Errorf("thing %d, turn %d: %g, want %g", i, j, v, want)
			}
		}
	}
}

// On a machine whose speed wanders by a half and more, the ratio of two things that
// differ by 3 % is found to within half a percent. Medians alone miss it by far more.
func TestLevelFindsRatio(t *testing.T) {
	const simulated, turns, things, ratio = 200, 100, 5, 0.97
	r := rand.New(rand.NewPCG(3, 4))
	var errLevelled, errMedians Sample
	for range simulated {
		all := make([]Sample, things)
		speed := 0.0
		for range turns {
			speed = 0.95*speed + 0.1*r.NormFloat64() // the machine, for all of a turn
			for i := range all {
				v := math.Exp(speed + 0.015*r.NormFloat64()) // one thing's own noise
				if r.IntN(20) == 0 {
					v *= 0.5 // another program took the core
				}
				if i == 1 {
					v *= ratio
				}
				all[i] = append(all[i], v*float64(1+i))
			}
		}
		miss := func(s []Sample) float64 { return math.Abs(s[1].Median()/s[0].Median()/2/ratio - 1) }
		errLevelled, errMedians = append(errLevelled, miss(Level(all))), append(errMedians, miss(all))
	}
	if most := errLevelled.Quantile(0.95); most > 0.006 {
		t.Errorf("the ratio is wrong by %.2f %% in one of 20", most*100)
	}
	if plain := errMedians.Quantile(0.95); plain < 2*errLevelled.Quantile(0.95) {
		t.Errorf("medians alone are as good: %.2f %%: this test shows nothing", plain*100)
	}
}
