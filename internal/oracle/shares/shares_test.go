package shares_test

import (
	"math"
	"testing"

	"weir/internal/fw/shaper"
	"weir/internal/oracle/shares"
)

// Trees small enough to compute by hand.
func TestOf(t *testing.T) {
	root := func(rate uint64, children int) shaper.Class {
		return shaper.Class{Name: "root", Parent: -1, First: 1, Children: children, Weight: 1, Max: shaper.Rate{Bytes: rate}}
	}
	leaf := func(weight uint32, least, most uint64, priority uint8) shaper.Class {
		return shaper.Class{Weight: weight, Min: shaper.Rate{Bytes: least}, Max: shaper.Rate{Bytes: most}, Priority: priority}
	}
	for name, c := range map[string]struct {
		classes       []shaper.Class
		offered, want []float64
	}{
		"weights":    {[]shaper.Class{root(100, 2), leaf(3, 0, 0, 0), leaf(1, 0, 0, 0)}, []float64{0, 200, 200}, []float64{100, 75, 25}},
		"not used":   {[]shaper.Class{root(100, 2), leaf(3, 0, 0, 0), leaf(1, 0, 0, 0)}, []float64{0, 10, 200}, []float64{100, 10, 90}},
		"guarantee":  {[]shaper.Class{root(100, 2), leaf(3, 0, 0, 0), leaf(1, 50, 0, 0)}, []float64{0, 200, 200}, []float64{100, 37.5, 62.5}},
		"limit":      {[]shaper.Class{root(100, 2), leaf(3, 0, 30, 0), leaf(1, 0, 0, 0)}, []float64{0, 200, 50}, []float64{80, 30, 50}},
		"priorities": {[]shaper.Class{root(64, 2), leaf(1, 0, 0, 5), leaf(1, 0, 0, 0)}, []float64{0, 200, 200}, []float64{64, 63.5, 0.5}},
		"too much":   {[]shaper.Class{root(100, 2), leaf(1, 150, 0, 0), leaf(1, 50, 0, 0)}, []float64{0, 200, 200}, []float64{100, 75, 25}},
	} {
		got := shares.Of(&shaper.Shaper{Classes: c.classes}, c.offered)
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-6 {
				t.Errorf("%s: got %v, want %v", name, got, c.want)
				break
			}
		}
	}
}
