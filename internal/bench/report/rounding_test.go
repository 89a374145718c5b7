package report

import "testing"

// A difference has a sign, and as many digits as any other figure.
func TestFiguresOfDifferences(t *testing.T) {
	for v, want := range map[float64]string{19.94: "+19.9", -3.126: "-3.13", 0.04: "+0.0400", 0: "0", 1234.5: "+1,230"} {
		got := Signed(v)
		if got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
		if err := checkFigure(got, false); err != nil {
			t.Error(err)
		}
	}
	for _, cell := range []string{"+19.94", "19.9 (+3.126)", "-0.5001"} {
		if checkFigure(cell, true) == nil {
			t.Errorf("%s has too many digits, and is not found", cell)
		}
	}
}

// A count may stand in full, unless a chart shows the same unit with fewer digits.
func TestFiguresOfCounts(t *testing.T) {
	if err := checkFigure("1,234", true); err != nil {
		t.Error(err)
	}
	for _, counts := range []bool{false, true} {
		for _, cell := range []string{"1234.5", "99.96", "0.040 – 1,230"} {
			if checkFigure(cell, counts) == nil {
				t.Errorf("%s is not found", cell)
			}
		}
	}
	if checkFigure("1,234", false) == nil {
		t.Error("1,234 stands beside a chart's 1,230, and is not found")
	}
}
