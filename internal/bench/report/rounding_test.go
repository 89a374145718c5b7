package report

import "testing"

// A difference has a sign, and as many digits as any other figure.
func TestFiguresOfDifferences(t *testing.T) {
	for v, want := range map[float64]string{19.94: "+19.9", -3.126: "-3.13", 0.04: "+0.0400", 0: "0", 1234.5: "+1,230"} {
		got := Signed(v)
		if got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
		if err := checkFigure(got); err != nil {
			t.Error(err)
		}
	}
	for _, cell := range []string{"+19.94", "19.9 (+3.126)", "-0.5001"} {
		if checkFigure(cell) == nil {
			t.Errorf("%s has too many digits, and is not found", cell)
		}
	}
}
