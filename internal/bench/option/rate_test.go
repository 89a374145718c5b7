package option

import "testing"

func TestRates(t *testing.T) {
	for text, want := range map[string]Rate{"10M": 10e6, "2.5g": 2.5e9, "0": 0, "64k": 64e3, "1500": 1500} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "fast", "-1", "NaN", "1e40", "10MB", "Inf"} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("ParseRate(%q) = %v", text, got)
		}
	}
	for rate, want := range map[Rate]string{0: "unlimited", 941e6: "941 Mbit/s", 1e10: "10 Gbit/s", 950: "950 bit/s"} {
		if got := rate.String(); got != want {
			t.Errorf("%f is written %q, want %q", float64(rate), got, want)
		}
	}
}
