package qoscost

import (
	"strings"
	"testing"

	"weir/internal/bench/forward"
	"weir/internal/bench/paths"
	"weir/internal/bench/traffic"
	"weir/internal/stats"
)

// The tables and the charts write a rate alike, whatever it is.
func TestFigures(t *testing.T) {
	r := &Report{Forward: &forward.Report{Control: stats.NewControl()}, Line: 1234.5}
	net := -3.126
	for i, path := range []string{paths.Generator, paths.Kernel, paths.KernelHTB, paths.Weir, paths.WeirQoS} {
		mpps := stats.Sample{[]float64{0.04, 99.96, 1234.5, 10.004, 5.0036}[i]}
		r.Forward.Rows = append(r.Forward.Rows, forward.Row{Path: path, Case: traffic.Case{Frame: 64, Cores: 1}, Mpps: mpps, NS: 1000 / mpps.Median(), NetNS: &net})
		r.stories = append(r.stories, &story{path: path, cores: 1, line: mpps, rates: []rate{{offered: 0.04, forwarded: mpps, busy: stats.Sample{0.9996}}}})
	}
	d := r.document()
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	story := d.Sections[0].Charts
	if len(story) != 3 {
		t.Fatalf("%d charts, want rate and CPU, what is forwarded, and the line", len(story))
	}
	said := strings.Join(append(d.Verdicts, story[2].Note), "\n")
	if strings.Count(said, "1,230 Mpps") != 3 || !strings.Contains(said, "they cost 99.9 ns a frame") {
		t.Errorf("the verdicts and the chart write a figure in different ways:\n%s", said)
	}
}
