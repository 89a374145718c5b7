package stats

import (
	"math"
	"testing"
)

// TestStudentQuantile compares with published tables of Student's t.
func TestStudentQuantile(t *testing.T) {
	for _, c := range []struct{ p, df, want float64 }{
		{0.90, 1, 3.078}, {0.95, 1, 6.314}, {0.975, 1, 12.706}, {0.99, 1, 31.821}, {0.999, 1, 318.309},
		{0.90, 4, 1.533}, {0.95, 4, 2.132}, {0.975, 4, 2.776}, {0.99, 4, 3.747}, {0.999, 4, 7.173},
		{0.90, 10, 1.372}, {0.95, 10, 1.812}, {0.975, 10, 2.228}, {0.99, 10, 2.764}, {0.999, 10, 4.144},
		{0.90, 30, 1.310}, {0.95, 30, 1.697}, {0.975, 30, 2.042}, {0.99, 30, 2.457}, {0.999, 30, 3.385},
		{0.95, 100, 1.660}, {0.975, 100, 1.984}, {0.99, 100, 2.364},
		{0.975, 1e6, 1.960}, {0.995, 1e6, 2.576}, // as good as normal
		{0.5, 7, 0}, {0.025, 10, -2.228},
	} {
		if got := StudentQuantile(c.p, c.df); math.Abs(got-c.want) > 6e-4*max(1, math.Abs(c.want)/100) {
			t.Errorf("t(%v, %v): %.4f, want %.3f", c.p, c.df, got, c.want)
		}
	}
}

// TestStudentTail checks that the tail is the inverse of the quantile, also for degrees
// of freedom that are not whole numbers.
func TestStudentTail(t *testing.T) {
	for _, df := range []float64{1, 1.37, 2.5, 8, 25.2, 400} {
		for _, p := range []float64{0.6, 0.9, 0.975, 0.9999} {
			if got := 1 - studentTail(StudentQuantile(p, df), df); math.Abs(got-p) > 1e-9 {
				t.Errorf("df %v: tail of the quantile of %v: %v", df, p, got)
			}
		}
	}
	if got := studentTail(math.Inf(1), 5); got != 0 {
		t.Errorf("tail of infinity: %v", got)
	}
}
