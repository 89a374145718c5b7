package stats

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCDF(t *testing.T) {
	for _, c := range []struct {
		s      Sample
		points int
		want   []Point
	}{
		{nil, 5, nil},
		{Sample{4}, 5, []Point{{4, 1}}},
		{Sample{3, 1, 2, 2}, 10, []Point{{1, 0.25}, {2, 0.75}, {3, 1}}},
		{Sample{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 4, []Point{{1, 0.1}, {4, 0.4}, {7, 0.7}, {10, 1}}},
	} {
		if got := c.s.CDF(c.points); !cmp.Equal(got, c.want) {
			t.Errorf("%v in %d points: %v, want %v", c.s, c.points, got, c.want)
		}
	}
}

func TestAtMost(t *testing.T) {
	s := Sample{90, 100, 101, 250}
	for limit, want := range map[float64]float64{89: 0, 100: 0.5, 250: 1} {
		if got := s.AtMost(limit); got != want {
			t.Errorf("at most %v: %v, want %v", limit, got, want)
		}
	}
	if got := (Sample{}).AtMost(1); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
