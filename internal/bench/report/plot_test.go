package report

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/stats"
)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		scale  scale
		wanted int
		want   []float64
	}{
		{scale{from: 0, to: 6.8}, 7, []float64{0, 1, 2, 3, 4, 5, 6}},
		{scale{from: 0, to: 100}, 5, []float64{0, 20, 40, 60, 80, 100}},
		{scale{from: 3, to: 3}, 5, []float64{3}},
		{scale{log: true, from: 1000, to: 1e6}, 5, []float64{1000, 1e4, 1e5, 1e6}},
		{scale{log: true, from: 0.5, to: 6}, 5, []float64{0.5, 1, 2, 5}},
		{scale{log: true, from: 1, to: 1e12}, 5, []float64{1, 1e3, 1e6, 1e9, 1e12}},
	} {
		got := c.scale.ticks(c.wanted)
		for i := range got {
			got[i] = math.Round(got[i]*1e6) / 1e6
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%+v, %d wanted (-want +got):\n%s", c.scale, c.wanted, diff)
		}
	}
}

func TestScale(t *testing.T) {
	for _, c := range []struct {
		scale   scale
		v, want float64
	}{
		{scale{from: 0, to: 10, a: 100, b: 200}, 5, 150},
		{scale{from: 0, to: 10, a: 200, b: 100}, 0, 200},
		{scale{log: true, from: 1, to: 100, a: 0, b: 100}, 10, 50},
		{scale{from: 4, to: 4, a: 0, b: 100}, 4, 50},
	} {
		if got := c.scale.at(c.v); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v at %v: %v, want %v", c.scale, c.v, got, c.want)
		}
	}
}

// Names of lines that end close together are moved apart, inside the plot.
func TestSpreadOut(t *testing.T) {
	labels := []label{{y: 100, text: "c"}, {y: 99, text: "b"}, {y: 10, text: "a"}}
	spreadOut(labels, 0, 105)
	for i, want := range []label{{y: 10, text: "a"}, {y: 105 - lineHeight, text: "b"}, {y: 105, text: "c"}} {
		if labels[i].text != want.text || labels[i].y != want.y {
			t.Errorf("label %d: %s at %v, want %s at %v", i, labels[i].text, labels[i].y, want.text, want.y)
		}
	}
}

// A peak of one moment among thousands is still drawn.
func TestPeaksSurvive(t *testing.T) {
	var points []Moment
	for i := range 5000 {
		points = append(points, Moment{float64(i) / 1000, 1})
	}
	points[2500].Value = 9
	p := &timePlot{box: box{x: scale{from: 0, to: 5, a: 0, b: 100}}}
	places := p.places(points, scale{from: 0, to: 10, a: 10, b: 0})
	top := 10.0
	for _, at := range places {
		top = min(top, at.y)
	}
	if top != 1 || len(places) > 500 {
		t.Errorf("the highest place is %v of %d, want 1 of at most 500", top, len(places))
	}
}

// A logarithmic X axis has room for 0.
func TestAcrossZero(t *testing.T) {
	for _, c := range []struct {
		places, want []float64
	}{
		{[]float64{0, 100, 10_000}, []float64{0, 100, 300}},
		{[]float64{10, 1_000}, []float64{0, 300}},
		{[]float64{0}, []float64{150}},
	} {
		var s Series
		for _, x := range c.places {
			s.Points = append(s.Points, Point{X: x, Runs: stats.Sample{1}})
		}
		scale := (&Curves{X: Axis{Log: true}, Series: []Series{s}}).across(0, 300)
		for i, x := range c.places {
			if got := scale.at(x); math.Abs(got-c.want[i]) > 1e-9 {
				t.Errorf("%v: %v is at %v, want %v", c.places, x, got, c.want[i])
			}
		}
	}
}

// An axis begins with 0, not with -0.
func TestTickOfNothing(t *testing.T) {
	if first := (scale{to: 421_050}).ticks(5)[0]; math.Signbit(first) || first != 0 {
		t.Errorf("the first tick is %v", first)
	}
}

// TestStylesDiffer checks that no two of the first 24 lines of a chart are drawn alike, beside
// our own two, and that the sheet draws what the classes say.
func TestStylesDiffer(t *testing.T) {
	c, seen := newColours(), map[string]string{}
	for i := range 26 {
		name := fmt.Sprintf("line %d", i)
		s := c.of(name, i < 2)
		if was := seen[s.class]; was != "" {
			t.Errorf("%s is drawn like %s: %s", name, was, s.class)
		}
		seen[s.class] = name
	}
	for _, rule := range []string{".chart .curve.c1.again {", ".chart .curve.c6.again {", ".chart .curve.thick {", ".chart .curve.thin.thick {"} {
		if !strings.Contains(chartStyle, rule) {
			t.Errorf("the sheet has no %q", rule)
		}
	}
}
