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
		one.rate, one.cost = stats.Sample{rate, rate, rate}, stats.Sample{0.25}
	}
	d := b.document()
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	said := strings.Join(d.Verdicts, "\n")
	if strings.Count(said, missed) != 1 || !strings.Contains(said, "TCP, frames, 8 connections: weir ÷ wireguard-go is 1.29 (floor 1.30: missed)") || strings.Count(said, holds) != 9 {
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
