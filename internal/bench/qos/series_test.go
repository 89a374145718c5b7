package qos

import (
	"math"
	"testing"
	"time"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// A series of 10 ms bins, with windows worked out by hand: 3,000 bytes in 30 ms are 800,000
// bit/s.
func TestWindows(t *testing.T) {
	s := series{1000, 0, 2000, 3000, 1000}
	if got := s.rate(); !near(got, 7000*8/0.05) {
		t.Errorf("rate %v", got)
	}
	got := s.windows(3 * bin)
	for i, want := range []float64{3000, 5000, 6000} {
		if !near(got[i], want*8/0.03) {
			t.Errorf("window %d: %v bit/s, want %v bytes", i, got[i], want)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d windows", len(got))
	}
	if got := s.windows(time.Second); len(got) != 1 || !near(got[0], s.rate()) {
		t.Errorf("a series shorter than its window: %v", got)
	}
	if got := (series{}).windows(time.Second); len(got) != 0 {
		t.Errorf("windows of nothing: %v", got)
	}
	if got := s.parts(2 * bin); len(got) != 2 || got[0] != 1000 || got[1] != 5000 {
		t.Errorf("parts %v", got)
	}
	if got := s.between(20*time.Millisecond, time.Hour); len(got) != 3 || got[0] != 2000 {
		t.Errorf("between: %v", got)
	}
}

// Jain's index by hand: (1+3)²/(2·(1+9)) is 0.8.
func TestJain(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		want   float64
	}{{[]float64{5, 5, 5, 5}, 1}, {[]float64{8, 0, 0, 0}, 0.25}, {[]float64{1, 3}, 0.8}, {[]float64{0, 0}, 1}, {[]float64{7}, 1}} {
		if got := jain(c.shares); !near(got, c.want) {
			t.Errorf("%v: %v, want %v", c.shares, got, c.want)
		}
	}
	// Windows of two bins: 3:1 and 1:1, so 0.8 and 1. What is left over does not count.
	flows := []series{{2, 1, 2, 2, 9}, {1, 0, 3, 1, 0}}
	if got := jainPer(flows, 2*bin); !near(got, 0.9) {
		t.Errorf("per window: %v", got)
	}
}

func TestGrade(t *testing.T) {
	for millis, want := range map[float64]string{-1: "A+", 4.9: "A+", 5: "A", 29.9: "A", 30: "B", 60: "C", 199: "C", 200: "D", 400: "F"} {
		if got := grade(millis); got != want {
			t.Errorf("%v ms: %s, want %s", millis, got, want)
		}
	}
}

// The rate of 8,000 bit/s is 10 bytes in each bin.
func TestAboveAndBelow(t *testing.T) {
	s := make(series, bins(14*time.Second))
	for i := range s {
		s[i] = 10
		if i >= bins(3*time.Second) && i < bins(4*time.Second) {
			s[i] = 0 // every window of 10 s up to 4 s has a tenth less
		}
		if i >= bins(13*time.Second) {
			s[i] = 15
		}
	}
	if got := above(s, 8000); !near(got, 5) {
		t.Errorf("above: %v %%, want 5", got)
	}
	o := &outcome{scene: &scene{rate: 8000}, up: &arrivals{}}
	for f := range o.up.flows {
		o.up.flows[f] = make(series, len(s))
	}
	o.up.flows[1] = s
	if got := below(o); !near(got, 10) {
		t.Errorf("below: %v %%, want 10", got)
	}
}
