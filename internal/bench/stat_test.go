package bench

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
		if got := round(v); math.Abs(got-want) > math.Abs(want)*1e-12 {
			t.Errorf("%v rounds to %v, want %v", v, got, want)
		}
	}
}
