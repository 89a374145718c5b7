package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/bench/report"
	"weir/internal/lab"
	"weir/internal/testenv"
)

// shortOptions measure next to nothing: these tests ask whether frames find
// their way and are checked, not how fast.
func shortOptions(paths ...string) Options {
	o := Defaults()
	o.Paths, o.Flows, o.Runs, o.Seconds = paths, []int{200}, 1, 50*time.Millisecond
	o.quick = true
	o.name = "weir-test-bench"
	return o
}

// nothingLeft fails if a benchmark left anything behind.
func nothingLeft(t *testing.T, name string) {
	t.Helper()
	for _, pattern := range []string{"/run/netns/" + name + "-*", "/run/" + name} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
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
		connects := row.Path != PathGenerator && row.Path != PathRedirect && row.Path != PathKernel
		if (row.NewPerS != nil) != connects {
			t.Errorf("%s, %v: new connections %v", row.Path, row.Case, row.NewPerS)
		}
	}
	checkOverTime(t, o, r)
}

// checkOverTime fails unless the first cases have a chart with each run of each
// path, at the rate that the row has, and with the load of the cores.
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
	o := shortOptions(PathRedirect)
	o.Cores = []int{1024}
	_, err := Forward(t.Context(), o)
	var missing *missingError
	if !errors.As(err, &missing) {
		t.Fatalf("got %v, want what is missing", err)
	}
	nothingLeft(t, o.name)
}

// TestForward sends frames in both directions by the paths that need no weir.
func TestForward(t *testing.T) {
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "nft")
	for _, kind := range []struct {
		family   int
		protocol string
	}{{4, UDP}, {6, TCP}} {
		o := shortOptions(PathGenerator, PathRedirect, PathKernel, PathNft, PathNftNAT)
		o.Rules = []int{40} // that no frame may match
		o.Families, o.Protocols, o.Directions = []int{kind.family}, []string{kind.protocol}, []string{Both}
		report, err := Forward(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		checkRows(t, o, report)
		nothingLeft(t, o.name)
	}
}

// TestForwardSinks drops frames at the firewall's egress, of large frames.
func TestForwardSinks(t *testing.T) {
	testenv.NeedRoot(t)
	o := shortOptions(PathGenerator, PathKernel)
	o.Sinks, o.Frames = []string{Egress}, []int{1518}
	report, err := Forward(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	checkRows(t, o, report)
	if sinks := report.Rows[0].Sink + " " + report.Rows[1].Sink; sinks != "far egress" {
		t.Errorf("sinks: %s, want far for the generator and egress for the kernel", sinks)
	}
}

// buildWeir builds this tree's weir.
func buildWeir(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "weir")
	if out, err := exec.Command("go", "build", "-o", program, "weir/cmd/weir").CombinedOutput(); err != nil {
		t.Fatalf("build weir: %v\n%s", err, out)
	}
	return program
}

// TestForwardWeir measures this tree's weir at both hooks.
func TestForwardWeir(t *testing.T) {
	testenv.NeedRoot(t)
	program := buildWeir(t)
	for _, c := range []struct {
		hook, protocol string
		family         int
	}{{"xdp", UDP, 4}, {"xdp", TCP, 6}, {"tcx", TCP, 4}} {
		t.Run(c.hook+" "+c.protocol, func(t *testing.T) {
			o := shortOptions(PathWeir, PathWeirNAT)
			o.Rules = []int{40} // that no frame may match
			o.Program, o.Hook = program, c.hook
			o.Families, o.Protocols, o.Directions = []int{c.family}, []string{c.protocol}, []string{Both}
			report, err := Forward(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			checkRows(t, o, report)
			nothingLeft(t, o.name)
		})
	}
}

// TestForwardFindsWrongPaths ends where a path forwards other frames than it
// should: here the traffic that is to be translated meets rules that do not.
func TestForwardFindsWrongPaths(t *testing.T) {
	n := testNetwork(t)
	w := testWay(t, n, PathKernel, Case{64, 50, 4, UDP, 1, OneWay, Far, 0, 0})
	w.path.translates = true
	s := &setting{options: &Options{}, net: n}
	stop, err := w.path.flavours[0].start(context.Background(), s, w)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	r := &run{way: w, cores: []int{0}, seconds: 0.05, retries: new(int)}
	if _, err := r.measure(context.Background()); !errors.Is(err, errWrongFrames) || !strings.Contains(err.Error(), "not translated") {
		t.Errorf("error %v, want %v", err, errWrongFrames)
	}
}

func TestForwardSkips(t *testing.T) {
	testenv.NeedRoot(t)
	t.Setenv("PATH", t.TempDir())
	o := shortOptions(PathKernel, PathNft)
	o.Cores = []int{1, 1 << 14}
	report, err := Forward(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != 1 || len(report.Skipped) != 2 {
		t.Fatalf("%d rows, skipped %v; want one row, and nft and the many cores skipped", len(report.Rows), report.Skipped)
	}
	if s := report.Skipped[0]; s.Path != PathNft || !strings.Contains(s.Reason, "not installed") {
		t.Errorf("skipped: %v", s)
	}
}

// TestForwardEnds is a Ctrl-C in the middle, after which nothing is left; the
// same is true of what a killed run left, once another has run.
func TestForwardEnds(t *testing.T) {
	testenv.NeedRoot(t)
	o := shortOptions(PathKernel)
	o.Runs = 1000
	if _, err := lab.Up(context.Background(), lab.Options{Name: o.name}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("/run/"+o.name, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.Progress = writerFunc(func(b []byte) (int, error) {
		if bytes.Contains(b, []byte("round 1 ")) {
			cancel()
		}
		return len(b), nil
	})
	if _, err := Forward(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	nothingLeft(t, o.name)
	if _, err := Forward(ctx, o); !errors.Is(err, context.Canceled) { // while the network is built
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	nothingLeft(t, o.name)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestOnlyOneRuns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bench")
	unlock, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(dir); !errors.Is(err, errRunning) || !strings.HasSuffix(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("a second lock: %v, want %v and this process", err, errRunning)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	if unlock, err = lock(dir); err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}
