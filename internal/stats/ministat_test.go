package stats

import (
	"strings"
	"testing"
)

// The samples of ministat's manual page, and what it prints of them.
var (
	iguana    = Sample{50, 200, 150, 400, 750, 400, 150}
	chameleon = Sample{150, 400, 720, 500, 930}
)

func TestMinistat(t *testing.T) {
	var text strings.Builder
	if err := WriteMinistat(&text, Named{Name: "iguana", Sample: iguana}, Named{Name: "chameleon", Sample: chameleon}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"x iguana\n+ chameleon\n",
		"    N        Min        Max     Median        Avg       Stddev\n",
		"x   7         50        750        200        300    238.04761\n",
		"+   5        150        930        500        540    299.08193\n",
		"No difference proven at 95.0% confidence\n",
		"(Student's t, pooled s = 264.159)\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

func TestMinistatPlot(t *testing.T) {
	var text strings.Builder
	writePlot(&text, Sample{0, 0, 73, 10}, Sample{0, 30, 40, 50})
	lines := strings.Split(text.String(), "\n")
	// Both bars are within the scale: mean 20.75 with deviation 35.1 begins left of 0.
	if len(lines) != 7 { // frame, two rows of dots, two bars, frame, nothing
		t.Fatalf("%d lines:\n%s", len(lines), text.String())
	}
	for i, line := range lines[:6] {
		if len(line) != plotWidth+2 {
			t.Errorf("line %d is %d wide:\n%s", i+1, len(line), text.String())
		}
	}
	if strings.Count(lines[1], "x") != 1 || strings.Count(lines[2], "*") != 1 || strings.Count(lines[2], "x") != 2 ||
		strings.Count(lines[2], "+") != 3 {
		t.Errorf("not one dot per run:\n%s", text.String())
	}
	if !strings.Contains(lines[3], "A") || !strings.Contains(lines[3], "M") {
		t.Errorf("no average and median:\n%s", text.String())
	}
}

// TestMinistatNothing checks equal values, which have no scale, and two runs, which are
// too few for a test.
func TestMinistatNothing(t *testing.T) {
	var text strings.Builder
	if err := WriteMinistat(&text, Named{Name: "a", Sample: Sample{3, 3}}, Named{Name: "b", Sample: Sample{3}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "No verdict: it needs 3 runs of each") {
		t.Errorf("%s", text.String())
	}
}
