package pppoe

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"weir/internal/host/hostinfo"

	"weir/internal/bench/forward"
	"weir/internal/bench/paths"
	"weir/internal/bench/traffic"
	"weir/internal/stats"
	"weir/internal/testenv"
)

// TestRun forwards frames of the largest size both ways with this tree's weir and a session, very briefly. Each frame is
// checked where it arrives. How fast they are is no matter here.
func TestRun(t *testing.T) {
	testenv.NeedRoot(t)
	o := Defaults()
	o.Frames, o.directions = []int{1518}, []string{traffic.Both}
	o.Flows, o.Runs, o.Seconds = 100, 1, 50*time.Millisecond
	o.Program, o.name, o.quick = testenv.BuildWeir(t), "weir-test-pppoe", true
	d, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	testenv.NothingLeft(t, o.name)
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	if rows := d.Sections[0].Tables[0].Rows; len(rows) != 1 {
		t.Errorf("%d rows: %v", len(rows), rows)
	}
	if len(d.Skipped) > 0 {
		t.Errorf("skipped: %v", d.Skipped)
	}
}

// The floors depend on the size of frames, and on what the session takes.
func TestVerdict(t *testing.T) {
	row := func(path string, frame int, mpps float64) forward.Row {
		return forward.Row{Path: path, Case: traffic.Case{Frame: frame, Cores: 1}, Mpps: stats.Sample{mpps}, NS: 1000 / mpps}
	}
	for _, c := range []struct {
		frame               int
		generator, no, with float64
		ratio, net          float64
		verdict             string
	}{
		{64, 5, 2.5, 2.45, 0.98, 0.961, "holds"}, // 200 of 400 ns are the generator's
		{64, 5, 2.5, 2.37, 0.948, 0.901, "missed"},
		{1518, 5, 2.5, 2.44, 0.976, 0.953, "missed"},       // the floor is higher there
		{64, 2, 0.5, 0.49, 0.98, 0.974, "holds, but cost"}, // 41 ns
	} {
		all := costs([]forward.Row{row(paths.Generator, c.frame, c.generator), row(paths.WeirNAT, c.frame, c.no), row(paths.WeirNATPPPoE, c.frame, c.with)})
		if len(all) != 1 {
			t.Fatalf("%d pairs", len(all))
		}
		if got := &all[0]; math.Abs(got.ratio()-c.ratio) > 1e-3 || math.Abs(got.netRatio()-c.net) > 1e-3 || !strings.HasPrefix(got.verdict(), c.verdict) {
			t.Errorf("%v: %.3f, net %.3f, %s; want %.3f, %.3f, %s", c, got.ratio(), got.netRatio(), got.verdict(), c.ratio, c.net, c.verdict)
		}
	}
}

// What a bare redirect takes for a session is beside what weir takes.
func TestLeast(t *testing.T) {
	row := func(path string, ns float64) forward.Row {
		return forward.Row{Path: path, Case: traffic.Case{Frame: 1518, Cores: 1}, Mpps: stats.Sample{1000 / ns}, NS: ns}
	}
	rows := []forward.Row{row(paths.Redirect, 250), row(paths.RedirectPPPoE, 260), row(paths.WeirNAT, 290), row(paths.WeirNATPPPoE, 304)}
	all := costs(rows)
	if len(all) != 1 {
		t.Fatalf("%d pairs", len(all))
	}
	if ns, ratio, ok := all[0].least(); !ok || math.Abs(ns-10) > 1e-3 || math.Abs(ratio-290.0/300) > 1e-3 || math.Abs(all[0].more()-14) > 1e-3 {
		t.Errorf("%.3f ns, %.3f, %v; more %.3f", ns, ratio, ok, all[0].more())
	}
	if all := costs(rows[2:]); len(all) != 1 {
		t.Fatalf("%d pairs", len(all))
	} else if _, _, ok := all[0].least(); ok {
		t.Error("there is no bare redirect")
	}
}

// The tables and the charts write a time alike, whatever it is. What a session takes may be less than nothing.
func TestFigures(t *testing.T) {
	f := &forward.Report{Control: stats.NewControl()}
	for path, mpps := range map[string]stats.Sample{paths.Generator: {25000}, paths.WeirNAT: {0.81, 10.004}, paths.WeirNATPPPoE: {0.8121, 10.1}} {
		f.Rows = append(f.Rows, forward.Row{Path: path, Case: traffic.Case{Frame: 1518, Cores: 1}, Mpps: mpps, NS: 1000 / mpps.Median()})
	}
	d := document(f)
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	row := d.Sections[0].Tables[0].Rows[0]
	if !strings.HasPrefix(row[4], "-") || !strings.Contains(d.Verdicts[0], "takes "+row[4]+" ns") {
		t.Errorf("%q; %q", row, d.Verdicts[0])
	}
}

// The table of what two cores forward writes figures as charts do.
func TestSpreadFigures(t *testing.T) {
	var ways []*way
	for i, spread := range []string{"off", "auto", "2", "off"} {
		ways = append(ways, &way{name: fmt.Sprint("weir, spread ", spread, i), path: "weir", spread: spread, mpps: stats.Sample{[]float64{0.81, 99.96, 1234.5, 0.04}[i]}, lost: stats.Sample{0.09996}})
	}
	d := spreadDocument(&Options{}, ways, hostinfo.Machine{}, time.Now())
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	if len(d.Sections[0].Tables[0].Rows) != len(ways) {
		t.Errorf("%d rows", len(d.Sections[0].Tables[0].Rows))
	}
}
