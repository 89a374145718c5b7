package affinity

import (
	"strings"
	"testing"
	"time"

	"weir/internal/host/hostinfo"
	"weir/internal/stats"
)

// The table and the verdict write a rate alike, whatever it is.
func TestFigures(t *testing.T) {
	r := &result{capacity: 1234.5e6, verdict: verdict{Sentence: "cpu1 is full of softirq: queue 0"}}
	for which, mpps := range []float64{0.04, 99.96, 1234.5} {
		s := stats.Sample{mpps * 1e6, mpps * 1e6}
		r.runs[which] = runs{offered: s, arrived: s, late: stats.Sample{0.9996}, busy: stats.Sample{0.5}, foreign: stats.Sample{0.0004}}
	}
	o := Options{Times: 1.2}
	d := r.document(&o, time.Now(), hostinfo.Machine{})
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(d.Verdicts[0], "offered 1,230 Mpps, one core carries 1,230") || strings.Contains(d.Control.Why, "1234") {
		t.Errorf("%q, %q", d.Verdicts[0], d.Control.Why)
	}
}
