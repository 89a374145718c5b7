package qoscost

import (
	"slices"
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
	story := d.Sections[1].Charts
	if len(story) != 3 {
		t.Fatalf("%d charts, want rate and CPU, what is forwarded, and the line", len(story))
	}
	said := strings.Join(append(d.Verdicts, story[2].Note), "\n")
	if strings.Count(said, "1,230 Mpps") != 3 || !strings.Contains(said, "they cost 99.9 ns a frame") {
		t.Errorf("the verdicts and the chart write a figure in different ways:\n%s", said)
	}
}

// A figure has to reach its floor as it is printed.
func TestFloors(t *testing.T) {
	r := &Report{Forward: &forward.Report{Control: stats.NewControl()}, Line: 0.8}
	add := func(path string, cores int, mpps, line float64) {
		r.Forward.Rows = append(r.Forward.Rows, forward.Row{Path: path, Case: traffic.Case{Frame: 64, Cores: cores}, Mpps: stats.Sample{mpps}})
		r.stories = append(r.stories, &story{path: path, cores: cores, line: stats.Sample{line}})
	}
	add(paths.KernelHTB, 1, 0.5, 0.5)
	add(paths.Weir, 1, 4, 0.8)
	add(paths.WeirQoS, 1, 3.76, 0.8) // 15.96 ns
	add(paths.KernelHTB, 2, 0.8, 0.5)
	add(paths.Weir, 2, 8, 0.8)
	add(paths.WeirQoS, 2, 7.8, 0.775) // 6.4 ns
	want := [][]string{
		{"what queues take of a frame, ns, 1 core", "16.0", "≤ 15", "≤ 8", "missed"},
		{"weir with queues ÷ without, 1 core", "0.940", "≥ 0.93", "–", "holds"},
		{"weir with queues ÷ HTB and IFB, 1 core", "7.52", "≥ 4", "–", "holds"},
		{"at the line's rate, weir with queues ÷ without, 1 core", "1.000", "≥ 0.97", "–", "holds"},
		{"what queues take of a frame, ns, 2 cores", "6.4", "≤ 15", "≤ 8", "aim reached"},
		{"weir with queues ÷ without, 2 cores", "0.975", "≥ 0.93", "–", "holds"},
		{"weir with queues ÷ HTB and IFB, 2 cores", "9.75", "≥ 5", "–", "holds"},
		{"weir with queues, two cores ÷ one", "2.074", "≥ 1.85", "≥ 1.95", "aim reached"},
		{"at the line's rate, weir with queues ÷ without, 2 cores", "0.969", "≥ 0.97", "–", "missed"},
	}
	got := r.floors().Rows
	if len(got) != len(want) {
		t.Fatalf("%d figures, want %d: %v", len(got), len(want), got)
	}
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}
