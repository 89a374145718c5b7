package stats

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		s    Sample
		want float64
	}{
		{Sample{3}, 3},
		{Sample{5, 1, 3}, 3},
		{Sample{4, 1, 3, 2}, 2.5},
	} {
		before := append(Sample(nil), c.s...)
		if got := c.s.Median(); got != c.want {
			t.Errorf("median of %v: %v, want %v", c.s, got, c.want)
		}
		if !cmp.Equal(c.s, before) {
			t.Errorf("the order of runs was lost: %v, was %v", c.s, before)
		}
	}
	if got := (Sample{}).Median(); !math.IsNaN(got) {
		t.Errorf("median of nothing: %v", got)
	}
}

func TestSpread(t *testing.T) {
	s := Sample{9, 12, 10}
	if s.Min() != 9 || s.Max() != 12 || s.Spread() != 0.3 {
		t.Errorf("min %v, max %v, spread %v; want 9, 12, 0.3", s.Min(), s.Max(), s.Spread())
	}
}

func TestDifference(t *testing.T) {
	a, b := Sample{10, 10, 10}, Sample{11, 9, 12}
	if got := Difference(a, b); math.Abs(got-0.1) > 1e-9 {
		t.Errorf("difference of %v and %v: %v, want 0.1", a, b, got)
	}
	if Difference(a, b) != Difference(b, a) {
		t.Error("the difference depends on the order")
	}
}

func TestSampleJSON(t *testing.T) {
	b, err := json.Marshal(Sample{2.00000049, 1, 4})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"median":2,"min":1,"max":4,"runs":[2,1,4]}`; string(b) != want {
		t.Errorf("%s, want %s", b, want)
	}
	var back Sample
	if err := json.Unmarshal(b, &back); err != nil || !cmp.Equal(back, Sample{2, 1, 4}) {
		t.Errorf("read back: %v, %v", back, err)
	}
}

func TestRound(t *testing.T) {
	for v, want := range map[float64]float64{123456789: 123457000, 0.000123456789: 0.000123457, 0: 0, -1.23456789: -1.23457} {
		if got := Round(v); math.Abs(got-want) > math.Abs(want)*1e-12 {
			t.Errorf("%v rounds to %v, want %v", v, got, want)
		}
	}
}

func TestMoments(t *testing.T) {
	s := Sample{2, 4, 4, 4, 5, 5, 7, 9}
	if s.Mean() != 5 || math.Abs(s.Variance()-32.0/7) > 1e-12 {
		t.Errorf("mean %v, variance %v; want 5 and 32/7", s.Mean(), s.Variance())
	}
	if v := (Sample{1}).Variance(); !math.IsNaN(v) {
		t.Errorf("variance of one run: %v", v)
	}
	if m := (Sample{}).Mean(); !math.IsNaN(m) {
		t.Errorf("mean of nothing: %v", m)
	}
}

func TestQuantile(t *testing.T) {
	s := Sample{40, 10, 30, 20, 50}
	for q, want := range map[float64]float64{0: 10, 0.25: 20, 0.5: 30, 0.9: 46, 1: 50, -1: 10, 2: 50} {
		if got := s.Quantile(q); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if got := (Sample{}).Quantile(0.5); !math.IsNaN(got) {
		t.Errorf("quantile of nothing: %v", got)
	}
}
