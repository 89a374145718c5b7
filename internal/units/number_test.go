package units_test

import (
	"math"
	"testing"

	"weir/internal/units"
)

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -999: "-999", -1000: "-1,000"} {
		if got := units.Thousands(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 runs", 1: "1 run", 2: "2 runs", 1000: "1,000 runs"} {
		if got := units.Plural(n, "run"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestDigits(t *testing.T) {
	for _, c := range []struct {
		v      float64
		digits int
		want   string
	}{
		{0, 3, "0"}, {3.14159, 3, "3.14"}, {9.999, 3, "10.0"}, {1234.5, 3, "1,230"}, {1234.5, 6, "1,234.50"},
		{0.00123456, 3, "0.00123"}, {-0.5, 2, "-0.50"}, {-1234, 2, "-1,200"}, {math.NaN(), 3, "–"}, {math.Inf(1), 3, "–"},
	} {
		if got := units.Digits(c.v, c.digits); got != c.want {
			t.Errorf("%v with %d digits: %q, want %q", c.v, c.digits, got, c.want)
		}
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 950: "950", 0.25: "0.25", 999.9: "1k", 1000: "1k", 1500: "1.5k", 65536: "65.5k", 1e6: "1M", 1e10: "10G", -2500: "-2.5k"} {
		if got := units.Short(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
