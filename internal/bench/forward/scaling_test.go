package forward

import (
	"strings"
	"testing"

	"weir/internal/bench/paths"
	"weir/internal/bench/traffic"
	"weir/internal/stats"
	"weir/internal/textout"
)

// TestScaling compares each path with itself on one core, in the same kind of traffic.
func TestScaling(t *testing.T) {
	r := example(t)
	one := r.sections[0].c
	two, other := one, one
	two.Cores = 2
	other.Cores, other.Frame = 2, 1518
	p, err := paths.New(paths.WeirNAT, paths.WeirOptions{Hook: "xdp"})
	if err != nil {
		t.Fatal(err)
	}
	r.add(two, rows(two, []*samples{{path: p, mpps: stats.Sample{7.6, 7.6, 7.6}}}))
	r.add(other, rows(other, []*samples{{path: p, mpps: stats.Sample{3}}}))
	r.Scaling = r.scaling()
	if len(r.Scaling) != 1 {
		t.Fatalf("%d comparisons, want 1: %+v", len(r.Scaling), r.Scaling)
	}
	if s := r.Scaling[0]; s.Path != paths.WeirNAT || s.Cores != 2 || s.Than != 1 || s.Mpps != 1.9 || s.Direction != traffic.OneWay {
		t.Errorf("%+v, want weir-nat on two cores, 1.9 times one", s)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "weir-nat: 1.90 times the frames") {
		t.Errorf("not printed:\n%s", b.String())
	}
}

// TestMore: what queues add to a frame's time.
func TestMore(t *testing.T) {
	c := traffic.Case{Cores: 2}
	sample := func(name string, mpps float64) *samples {
		p, err := paths.New(name, paths.WeirOptions{Hook: "xdp"})
		if err != nil {
			t.Fatal(err)
		}
		return &samples{path: p, mpps: stats.Sample{mpps}}
	}
	found := ratios(c, rows(c, []*samples{sample(paths.Kernel, 2), sample(paths.Weir, 8), sample(paths.KernelHTB, 1), sample(paths.WeirQoS, 7.8125)}))
	want := map[string]*float64{paths.WeirQoS + paths.Weir: new(6.0), paths.KernelHTB + paths.Kernel: new(1000.0), paths.Weir + paths.Kernel: nil, paths.WeirQoS + paths.KernelHTB: nil}
	if len(found) != len(want) {
		t.Fatalf("%d ratios, want %d: %+v", len(found), len(want), found)
	}
	for _, ratio := range found {
		switch ns, known := want[ratio.Of+ratio.To]; {
		case !known, (ns == nil) != (ratio.MoreNS == nil):
			t.Errorf("%s : %s has a difference of %v", ratio.Of, ratio.To, ratio.MoreNS)
		case ns != nil && *ns != *ratio.MoreNS:
			t.Errorf("%s : %s: %v ns, want %v", ratio.Of, ratio.To, *ratio.MoreNS, *ns)
		}
	}
}

// TestFloors: what the report has to reach, and says of it.
func TestFloors(t *testing.T) {
	c := traffic.Case{Cores: 1}
	sample := func(name string, mpps, newPerS float64) *samples {
		p, err := paths.New(name, paths.WeirOptions{Hook: "xdp"})
		if err != nil {
			t.Fatal(err)
		}
		return &samples{path: p, mpps: stats.Sample{mpps}, newPerS: stats.Sample{newPerS}}
	}
	found := ratios(c, rows(c, []*samples{sample(paths.WeirNAT, 10, 1000), sample(paths.WeirScrub, 9.6, 1000),
		sample(paths.Weir, 9.7, 1000), sample(paths.WeirOnce, 10, 1000), sample(paths.WeirRouteTo, 9.6, 1000), sample(paths.WeirLimits, 10, 890), sample(paths.WeirAfTo, 8, 1000)}))
	r := &Report{Control: stats.Control{OK: true}, Ratios: found}
	var b strings.Builder
	out := &textout.Lines{W: &b}
	r.writeRatios(out, c)
	for _, want := range []string{
		"weir-af-to : weir-nat = 0.80 in frames (floor 0.80: holds)",
		"weir : weir-once = 0.97 in frames (floor 0.98: missed)",
		"weir-scrub : weir-nat = 0.96 in frames (floor 0.95: holds)",
		"weir-route-to : weir-nat = 0.96 in frames (floor 0.97: missed)",
		"weir-limits : weir-nat = 1.00 in frames, 0.89 in new connections (floor 0.90: missed)",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no line says %q:\n%s", want, b.String())
		}
	}
}
