package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/bench/paths"
	"weir/internal/bench/report"
	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/lab"
	"weir/internal/missing"
	"weir/internal/testenv"
)

// shortOptions measure very briefly. These tests check that frames arrive and are
// checked, not how fast.
func shortOptions(paths ...string) Options {
	o := Defaults()
	o.Paths, o.Flows, o.Runs, o.Seconds = paths, []int{200}, 1, 50*time.Millisecond
	o.Quick = true
	o.Name = "weir-test-forward"
	return o
}

// checkRows fails unless each path was measured in each case.
func checkRows(t *testing.T, o Options, r *Report) {
	t.Helper()
	if got, want := len(r.Rows), len(o.Paths)*len(o.Cases()); got != want {
		t.Fatalf("%d rows, want %d; skipped: %v", got, want, r.Skipped)
	}
	for _, row := range r.Rows {
		if m := row.Mpps.Median(); !(m > 0.001 && m < 200) {
			t.Errorf("%s, %v: %v Mpps", row.Path, row.Case, m)
		}
		connects := !slices.Contains([]string{paths.Generator, paths.Redirect, paths.Kernel, paths.KernelHTB}, row.Path)
		if (row.NewPerS != nil) != connects {
			t.Errorf("%s, %v: new connections %v", row.Path, row.Case, row.NewPerS)
		}
	}
	checkOverTime(t, o, r)
}

// checkOverTime fails unless the first cases have a chart with each run of each path, at
// the rate of the row, and with the load of the cores.
func checkOverTime(t *testing.T, o Options, r *Report) {
	t.Helper()
	charts := r.OverTime()
	if want := min(len(o.Cases()), mostGroups); len(charts) != want {
		t.Fatalf("%d charts over time, want %d", len(charts), want)
	}
	for i, chart := range charts {
		rows := r.rowsOf(r.cases()[i])
		times := chart.Times
		if len(times.Parts) != len(rows) || len(times.Cores) == 0 || len(times.Panels) != 1 {
			t.Fatalf("%s: parts %v, %d cores, %d panels", chart.Title, times.Parts, len(times.Cores), len(times.Panels))
		}
		for k, row := range rows {
			part := times.Parts[k]
			seen := slices.ContainsFunc(times.Panels[0].Series[0].Points, func(m report.Moment) bool {
				return m.Seconds >= part.From && m.Seconds <= part.To && m.Value == row.Mpps[len(row.Mpps)-1]
			})
			if part.Name != row.Path || !seen {
				t.Errorf("%s: %s has no run of %v Mpps from %v to %v s", chart.Title, row.Path, row.Mpps, part.From, part.To)
			}
		}
	}
}

// TestNothingMeasured asks for more cores than there are.
func TestNothingMeasured(t *testing.T) {
	testenv.NeedRoot(t)
	o := shortOptions(paths.Redirect)
	o.Cores = []int{1024}
	_, err := Run(t.Context(), o)
	var lacks *missing.Error
	if !errors.As(err, &lacks) {
		t.Fatalf("got %v, want what is missing", err)
	}
	testenv.NothingLeft(t, o.Name)
}

// TestForward sends frames in both directions over the paths that need no weir.
func TestForward(t *testing.T) {
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "nft")
	testenv.NeedProgram(t, "tc")
	for _, kind := range []struct {
		family   int
		protocol string
	}{{4, traffic.UDP}, {6, traffic.TCP}} {
		o := shortOptions(paths.Generator, paths.Redirect, paths.Kernel, paths.Nft, paths.NftNAT, paths.KernelHTB)
		o.Rules = []int{40} // no frame may match them
		o.Families, o.Protocols, o.Directions = []int{kind.family}, []string{kind.protocol}, []string{traffic.Both}
		report, err := Run(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		checkRows(t, o, report)
		testenv.NothingLeft(t, o.Name)
	}
}

// TestForwardSinks drops large frames at the firewall's egress.
func TestForwardSinks(t *testing.T) {
	testenv.NeedRoot(t)
	o := shortOptions(paths.Generator, paths.Kernel)
	o.Sinks, o.Frames = []string{traffic.Egress}, []int{1518}
	report, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	checkRows(t, o, report)
	if sinks := report.Rows[0].Sink + " " + report.Rows[1].Sink; sinks != "far egress" {
		t.Errorf("sinks: %s, want far for the generator and egress for the kernel", sinks)
	}
}

// TestForwardWeir measures this tree's weir at both hooks.
func TestForwardWeir(t *testing.T) {
	testenv.NeedRoot(t)
	program := testenv.BuildWeir(t)
	for _, c := range []struct {
		hook, protocol string
		family         int
	}{{"xdp", traffic.UDP, 4}, {"xdp", traffic.TCP, 6}, {"tcx", traffic.TCP, 4}} {
		t.Run(c.hook+" "+c.protocol, func(t *testing.T) {
			o := shortOptions(paths.Weir, paths.WeirNAT)
			o.Rules = []int{40} // no frame may match them
			o.Program, o.Hook = program, c.hook
			switch {
			case c.hook == "tcx":
				o.Paths = append(o.Paths, paths.WeirAfTo, paths.WeirScrub, paths.WeirNATQoS, paths.WeirOnce)
			case c.family == 6:
				o.Paths = append(o.Paths, paths.VLAN...)
			default:
				o.Paths = append(o.Paths, paths.WeirAfTo, paths.WeirRouteTo, paths.WeirLimits, paths.WeirQoS)
			}
			o.Families, o.Protocols, o.Directions = []int{c.family}, []string{c.protocol}, []string{traffic.Both}
			report, err := Run(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			checkRows(t, o, report)
			testenv.NothingLeft(t, o.Name)
		})
	}
}

// TestForwardTurns: paths of two cases take turns, each in a lab of its own. All of these are gone afterwards, also if
// the benchmark is stopped in the middle.
func TestForwardTurns(t *testing.T) {
	testenv.NeedRoot(t)
	o := shortOptions(paths.Kernel, paths.Weir)
	o.Program, o.Turns, o.Cores = testenv.BuildWeir(t), 3, []int{1}
	if runtime.NumCPU() > 1 {
		o.Cores = []int{1, 2}
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	testenv.NothingLeft(t, o.Name)
	if want := len(o.Paths) * len(o.Cores); len(r.Rows) != want || r.Turns != 3 {
		t.Fatalf("%d rows of %d turns, want %d of 3", len(r.Rows), r.Turns, want)
	}
	for _, row := range r.Rows {
		if len(row.Mpps) != o.Runs || !(row.Mpps.Min() > 0.001) {
			t.Errorf("%s on %d cores: runs %v, want %d", row.Path, row.Cores, row.Mpps, o.Runs)
		}
	}
	if len(r.Scaling) != len(o.Paths)*(len(o.Cores)-1) {
		t.Errorf("scaling %v", r.Scaling)
	}
	if r.Control.Path != paths.Weir {
		t.Errorf("the control is of %q", r.Control.Path)
	}
	if method := strings.Join(r.method(), " "); !strings.Contains(method, "a run has 3 turns") {
		t.Errorf("the report does not say that paths took turns: %s", method)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.Paths, o.Runs = []string{paths.Redirect, paths.Kernel}, 100
	o.Progress = writerFunc(func(b []byte) (int, error) {
		if bytes.Contains(b, []byte("round 2 ")) {
			cancel()
		}
		return len(b), nil
	})
	r, err = Run(ctx, o)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	if r == nil || len(r.Rows) == 0 || len(r.Rows[0].Mpps) != 1 {
		t.Error("the run that was complete is not in the report")
	}
	testenv.NothingLeft(t, o.Name)
}

// TestForwardAgainst: another program is measured beside this one, and the daemon of its path is its own.
func TestForwardAgainst(t *testing.T) {
	testenv.NeedRoot(t)
	o := shortOptions(paths.Kernel, paths.Weir)
	o.Program, o.Turns = testenv.BuildWeir(t), 2
	started := t.TempDir() + "/started"
	o.Against = t.TempDir() + "/other"
	script := fmt.Sprintf("#!/bin/sh\necho \"$1\" >>%s\nexec %s \"$@\"\n", started, o.Program)
	if err := os.WriteFile(o.Against, []byte(script), 0o700); err != nil { //nolint:gosec // G306: it is a program
		t.Fatal(err)
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	testenv.NothingLeft(t, o.Name)
	var names []string
	for _, row := range r.Rows {
		names = append(names, row.Path)
	}
	if want := []string{paths.Kernel, paths.Weir, paths.Weir + otherName}; !slices.Equal(names, want) {
		t.Errorf("measured were %v, want %v", names, want)
	}
	if !slices.ContainsFunc(r.Ratios, func(a Ratio) bool { return a.Of == paths.Weir && a.To == paths.Weir+otherName && a.MoreNS != nil }) {
		t.Errorf("the report does not compare the two programs: %+v", r.Ratios)
	}
	calls, err := os.ReadFile(started)
	if err != nil {
		t.Fatal(err)
	}
	if ran := strings.Count(string(calls), "run\n"); ran != 2*o.Runs { // its path, and the control
		t.Errorf("the other program was started %d times as a daemon, want %d: %q", ran, 2*o.Runs, calls)
	}
}

// TestForwardRemovesTurns: what a killed run in turns leaves behind is removed by the next run.
func TestForwardRemovesTurns(t *testing.T) {
	testenv.NeedRoot(t)
	o := shortOptions(paths.Redirect)
	o.Program = testenv.BuildWeir(t) // as in TestForwardEnds
	if _, err := lab.Up(t.Context(), lab.Options{Name: o.Name + "-7"}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("/run/"+o.Name+"/beside-7", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	testenv.NothingLeft(t, o.Name)
}

// TestForwardFindsWrongPaths: the benchmark stops if a path forwards other frames than it
// should. Here traffic that should be translated meets rules that do not translate it.
func TestForwardFindsWrongPaths(t *testing.T) {
	testenv.NeedRoot(t)
	bed, err := testbed.Open(t.Context(), testbed.Options{Name: "weir-test-forward", Offloads: lab.OffloadsOff})
	if err != nil {
		t.Fatal(err)
	}
	defer bed.Close()
	p, err := paths.New(paths.Kernel, paths.WeirOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := &traffic.Setup{Testbed: bed, Case: traffic.Case{Frame: 64, Flows: 50, Family: 4, Protocol: traffic.UDP, Cores: 1, Direction: traffic.OneWay, Sink: traffic.Far}, Effect: p.Effect}
	w.Translates = true
	stop, err := p.Entries[0].Start(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	r := &run{setup: w, cores: []int{0}, seconds: 0.05, retries: new(int), least: firstFrames}
	if _, err := r.measure(context.Background()); !errors.Is(err, traffic.ErrWrongFrames) || !strings.Contains(err.Error(), "not translated") {
		t.Errorf("error %v, want %v", err, traffic.ErrWrongFrames)
	}
}

func TestForwardSkips(t *testing.T) {
	testenv.NeedRoot(t)
	t.Setenv("PATH", t.TempDir())
	o := shortOptions(paths.Kernel, paths.Nft)
	o.Cores = []int{1, 1 << 14}
	report, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != 1 || len(report.Skipped) != 2 {
		t.Fatalf("%d rows, skipped %v; want one row, and nft and the many cores skipped", len(report.Rows), report.Skipped)
	}
	if s := report.Skipped[0]; s.Path != paths.Nft || !strings.Contains(s.Reason, "not installed") {
		t.Errorf("skipped: %v", s)
	}
}

// TestForwardEnds: Ctrl-C in the middle leaves nothing behind. What a killed run leaves
// behind is removed by the next run.
func TestForwardEnds(t *testing.T) {
	testenv.NeedRoot(t)
	o := shortOptions(paths.Kernel)
	o.Runs, o.Program = 1000, testenv.BuildWeir(t) // it is asked what is left; this program would run all tests again
	if _, err := lab.Up(context.Background(), lab.Options{Name: o.Name}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("/run/"+o.Name, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.Progress = writerFunc(func(b []byte) (int, error) {
		if bytes.Contains(b, []byte("round 1 ")) {
			cancel()
		}
		return len(b), nil
	})
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	testenv.NothingLeft(t, o.Name)
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) { // while the network is being built
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	testenv.NothingLeft(t, o.Name)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
