package vpn

import (
	"strings"
	"testing"

	"weir/internal/bench/iperf"
	"weir/internal/stats"
)

// The floors are those of the ratios, and what was not measured has no row.
func TestDocument(t *testing.T) {
	o := Defaults()
	b := &bench{options: &o, tool: &iperf.Tool{}, tasks: o.tasks(), crypto: crypto{goes: stats.Sample{0.1}}}
	for _, one := range b.tasks {
		rate := 1.0
		switch {
		case one.engine == Weir && one.of == CaseNIC:
			rate = 1.29
		case one.engine == Weir && (one.of == CaseGSO || one.of == CaseUDP):
			rate = 2.6
		case one.stand != nil && one.stand.workers == 2:
			rate = 1.71
		}
		one.rate, one.cost = stats.Sample{rate, rate, rate}, stats.Sample{0.5}
		switch {
		case one.engine == Weir && one.of == CaseNIC:
			one.cost = stats.Sample{0.26} // ÷ what two workers gain, it is more than wireguard-go's
		case one.engine == Weir:
			one.cost = stats.Sample{0.2}
		}
	}
	d := b.document()
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	said := strings.Join(d.Verdicts, "\n")
	for _, want := range []string{
		"gso, one peer on 8 cores by the model: weir ÷ wireguard-go at its best is 1.14 (floor 1.00: holds).",
		"nic, one peer on 8 cores by the model: weir ÷ wireguard-go at its best is 0.88 (floor 1.00: missed).",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the verdicts do not say %q", want)
		}
	}
	if strings.Count(said, missed) != 2 || !strings.Contains(said, "TCP, frames, 8 connections: weir ÷ wireguard-go is 1.29 (floor 1.30: missed)") || strings.Count(said, holds) != 10 {
		t.Errorf("verdicts:\n%s", said)
	}
	if !d.Control.OK || d.Control.Difference != 0 {
		t.Errorf("control: %v", d.Control)
	}
	o.Cases = []string{CaseUDP}
	b.tasks = o.tasks()
	b.tasks[0].rate, b.tasks[0].cost = stats.Sample{10}, stats.Sample{1}
	if d = b.document(); d.Check() != nil || len(d.Verdicts) != 0 || len(d.Sections) != 1 || d.Control.OK {
		t.Errorf("a run that ended early: %v, %d sections", d.Verdicts, len(d.Sections))
	}
}

// Two workers that are twice as fast gain all cores; what one does alone is a limit.
func TestSpeedup(t *testing.T) {
	for _, c := range []struct {
		two  float64
		n    int
		want float64
	}{{2, 8, 8}, {2.1, 8, 8}, {1, 8, 1}, {1.5, 2, 1.5}, {1.6, 8, 8 / 2.75}} {
		if got := speedup(c.two, c.n); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("two are %v as fast: %d are %v, not %v", c.two, c.n, got, c.want)
		}
	}
}

func TestOpensslSpeed(t *testing.T) {
	for text, want := range map[string]float64{
		"version: 3.0.19\nThe 'numbers' are in 1000s of bytes per second processed.\ntype             1420 bytes\nChaCha20-Poly1305  2618453.61k\n": 2618453610,
		"": 0, "error\n": 0, "a bk\n": 0,
	} {
		if got := opensslSpeed(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// The tables write rates and times as charts do, whatever they are.
func TestFigures(t *testing.T) {
	o := Defaults()
	b := &bench{options: &o, tool: &iperf.Tool{}, tasks: o.tasks(), crypto: crypto{goes: stats.Sample{0.1}}}
	for i, one := range b.tasks {
		one.rate, one.cost = stats.Sample{[]float64{0.04, 99.96, 1234.5}[i%3], 1234.5}, stats.Sample{[]float64{0.04, 0.9996, 1234.5}[i%3]}
	}
	d := b.document()
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	if len(d.Sections) != 3 {
		t.Errorf("%d sections, want ratios, CPU and the model", len(d.Sections))
	}
}
