package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"weir/internal/bench/compare"

	"github.com/google/go-cmp/cmp"

	"weir/internal/bench/forward"
	"weir/internal/bench/paths"
	"weir/internal/bench/traffic"
	"weir/internal/host/hostinfo"
	"weir/internal/stats"
)

// recorded returns the records for the tests: 0.70 and 6.0.
func recorded() *File {
	return &File{Records: []Record{{CPU: "one", Ratios: []Ratio{
		{Of: paths.Weir, To: paths.Redirect, Flows: 1000, Mpps: 0.70},
		{Of: paths.WeirNAT, To: paths.NftNAT, Flows: 1000, Mpps: 6.0},
	}}}}
}

// made is a report with these ratios. The control of a noisy one failed.
type made struct {
	redirect, nat float64
	noisy         bool
}

func (m made) report(cpu string) *forward.Report {
	control := stats.NewControl()
	if m.noisy {
		control.Refuse("weir-nat differs from itself by 9.0 %")
	}
	c := traffic.Case{Flows: 1000}
	r := &forward.Report{Machine: hostinfo.Machine{CPU: cpu}, Control: control, Ratios: []forward.Ratio{
		{Of: paths.Weir, To: paths.Redirect, Case: c, Mpps: m.redirect},
		{Of: paths.WeirNAT, To: paths.Redirect, Case: c, Mpps: 0.5},
	}}
	if m.nat > 0 {
		r.Ratios = append(r.Ratios, forward.Ratio{Of: paths.WeirNAT, To: paths.NftNAT, Case: c, Mpps: m.nat})
	} else {
		r.Skipped = []forward.Skip{{Path: paths.NftNAT, Reason: "no nft"}}
	}
	return r
}

// in returns the reports one after the other, and counts them.
func in(cpu string, runs []made, n *int) one {
	return func(context.Context) (*forward.Report, error) {
		m := runs[min(*n, len(runs)-1)]
		*n++
		return m.report(cpu), nil
	}
}

func TestWatch(t *testing.T) {
	good, slow, noisy := made{0.71, 6.1, false}, made{0.71, 5.0, false}, made{0.1, 1, true}
	for _, c := range []struct {
		name    string
		runs    []made
		made    int // runs needed
		ok      bool
		states  string
		notices int
	}{
		{"as recorded", []made{good}, 1, true, "held held", 0},
		{"14 % under", []made{{0.603, 5.17, false}}, 1, true, "held held", 0},
		{"faster", []made{{0.9, 9, false}}, 1, true, "held held", 0},
		{"one is slower, three times", []made{slow}, 3, false, "held regression", 0},
		{"both are", []made{{0.5, 4, false}}, 3, false, "regression regression", 0},
		{"slow once", []made{slow, good}, 2, true, "held held", 0},
		{"slow twice", []made{slow, slow, good}, 3, true, "held held", 0},
		{"each slow at another time", []made{{0.5, 6, false}, {0.7, 4, false}}, 2, true, "held held", 0},
		{"noise does not count", []made{noisy, slow, slow, slow}, 4, false, "held regression", 1},
		{"nothing but noise is a notice", []made{noisy}, attempts, true, "", attempts + 1},
		{"too few of them", []made{slow, noisy}, attempts, true, "held unproven", attempts},
	} {
		n := 0
		r, err := watch(context.Background(), recorded(), in("one", c.runs, &n))
		if err != nil {
			t.Fatal(err)
		}
		var states []string
		for _, row := range r.Rows {
			states = append(states, row.Verdict)
		}
		d := r.Document("weir bench gate")
		if err := d.Check(); err != nil || d.Conclusive() != (len(r.runs) > 0) || len(d.Verdicts) != 2 {
			t.Errorf("%s: a document with %q, conclusive %v: %v", c.name, d.Verdicts, d.Conclusive(), err)
		}
		if n != c.made || r.OK() != c.ok || strings.Join(states, " ") != c.states || len(r.notices) != c.notices {
			t.Errorf("%s: %d runs, ok %v, %v, notices %q; want %d, %v, %s, %d", c.name, n, r.OK(), states, r.notices, c.made, c.ok, c.states, c.notices)
		}
	}
}

// A gate that cannot measure what it guards fails, even if the control fails too.
func TestSkipped(t *testing.T) {
	for _, c := range []struct {
		name   string
		report *forward.Report
		want   string
	}{
		{"no nft", made{0.71, 0, false}.report("one"), "nft-nat could not be measured: no nft"},
		{"no nft, and noise", made{0.71, 0, true}.report("one"), "nft-nat could not be measured: no nft"},
		{"weir", &forward.Report{Control: stats.NewControl(), Skipped: []forward.Skip{{Path: paths.Weir, Reason: "no BPF"}}}, "weir could not be measured: no BPF"},
		{"nothing at all", &forward.Report{Control: stats.NewControl()}, "weir : redirect, 1000 connections is recorded, but no run measures it"},
	} {
		_, err := watch(context.Background(), recorded(), func(context.Context) (*forward.Report, error) { return c.report, nil })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	r := made{0.71, 6.1, false}.report("one")
	r.Skipped = []forward.Skip{{Path: paths.Kernel, Reason: "not asked for"}}
	if got, err := watch(context.Background(), recorded(), func(context.Context) (*forward.Report, error) { return r, nil }); err != nil || !got.OK() {
		t.Errorf("a path that is not watched: %+v, %v", got, err)
	}
}

// The record for another CPU is chosen by a ratio's name, whatever the order.
func TestFor(t *testing.T) {
	limit := func(v float64) Ratio {
		return Ratio{Of: paths.Weir, To: paths.Redirect, Flows: 1000, Mpps: v}
	}
	nat := func(v float64) Ratio {
		return Ratio{Of: paths.WeirNAT, To: paths.NftNAT, Flows: 1000, Mpps: v}
	}
	f := &File{Records: []Record{{CPU: "one", Ratios: []Ratio{nat(5), limit(0.8)}}, {CPU: "two", Ratios: []Ratio{limit(0.7), nat(6)}},
		{CPU: "no limit", Ratios: []Ratio{nat(0.1)}}}}
	if r, same := f.For("three"); r.CPU != "two" || same {
		t.Errorf("%s was chosen", r.CPU)
	}
	if r, same := f.For("no limit"); r.CPU != "no limit" || !same {
		t.Errorf("%s was chosen", r.CPU)
	}
}

// Another CPU is compared with the smallest record and twice the margin, and a notice
// says so.
func TestForeignCPU(t *testing.T) {
	f := recorded()
	f.Put(Record{CPU: "two", Ratios: []Ratio{{Of: paths.Weir, To: paths.Redirect, Flows: 1000, Mpps: 0.82}}})
	for ratio, ok := range map[float64]bool{0.5: true, 0.48: false} {
		n := 0
		r, err := watch(context.Background(), f, in("three", []made{{ratio, 5, false}}, &n))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := r.WriteText(&text); err != nil || r.OK() != ok || r.margin != foreignMargin || r.recorded.CPU != "one" || !strings.Contains(text.String(), "notice: this CPU (three) has no record") {
			t.Errorf("%v: ok %v, %v\n%s", ratio, r.OK(), err, text.String())
		}
		if strings.Contains(text.String(), "SLOWER: 3 runs, each over 30 % under it") == ok {
			t.Errorf("%v:\n%s", ratio, text.String())
		}
	}
}

// A failed run has no verdict. It is an error only if the machine lacks something, or if
// all runs fail.
func TestFailedRuns(t *testing.T) {
	failure := errors.New("more than 1 % were lost")
	for _, c := range []struct {
		failed int
		err    error
	}{{1, nil}, {attempts - 1, nil}, {attempts, failure}} {
		n := 0
		r, err := watch(context.Background(), recorded(), func(context.Context) (*forward.Report, error) {
			if n++; n <= c.failed {
				return nil, failure
			}
			return made{0.71, 6.1, false}.report("one"), nil
		})
		if !errors.Is(err, c.err) || err == nil && (!r.OK() || len(r.notices) != c.failed) {
			t.Errorf("%d failed: %+v, %v", c.failed, r, err)
		}
	}
}

func TestRecord(t *testing.T) {
	n := 0
	got, err := record(context.Background(), in("one", []made{{0.7, 6, false}, {0.1, 1, true}, {0.8, 5, false}, {0.72, 5.5, false}}, &n))
	if err != nil {
		t.Fatal(err)
	}
	want := Record{CPU: "one", Command: "weir bench gate --record", Ratios: []Ratio{{paths.Weir, paths.Redirect, 1000, 0.72}, {paths.WeirNAT, paths.NftNAT, 1000, 5.5}}}
	if !cmp.Equal(got, want) || n != 4 {
		t.Errorf("after %d runs: %+v", n, got)
	}
	n = 0
	if _, err := record(context.Background(), in("one", []made{{0.7, 6, true}}, &n)); !errors.Is(err, errNoisy) {
		t.Errorf("of noise: %v", err)
	}
	n = 0
	if _, err := record(context.Background(), in("one", []made{{0.7, 0, false}}, &n)); err == nil {
		t.Error("a record lacks a ratio")
	}
}

func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "gate.json")
	if _, err := ReadFile(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	f := recorded()
	f.Records[0].Recorded = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := f.Write(name); err != nil {
		t.Fatal(err)
	}
	back, err := ReadFile(name)
	if err != nil || !cmp.Equal(back, f) {
		t.Errorf("%v: %s", err, cmp.Diff(f, back))
	}
	f.Records[0].Ratios[0].Mpps = 0
	if err := f.Write(name); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(name); err == nil {
		t.Error("a ratio of 0 was read")
	}
}

// The table and the verdicts write a ratio alike, whatever it is.
func TestFigures(t *testing.T) {
	r := &Result{margin: margin, recorded: Record{Ratios: []Ratio{
		{Of: paths.Weir, To: paths.Redirect, Flows: 1000, Mpps: 0.04}, {Of: paths.WeirNAT, To: paths.NftNAT, Flows: 1000, Mpps: 1234.5}}}}
	r.first = made{0.09996, 1234.5, false}.report("one")
	r.runs = []*forward.Report{r.first}
	var err error
	if r.Result, err = compare.Against(r.recorded.measurements(), measured(r.runs...), r.margin, needed); err != nil {
		t.Fatal(err)
	}
	d := r.Document("weir bench gate")
	if err := errors.Join(d.Check(), d.CheckFigures()); err != nil {
		t.Error(err)
	}
	for i, row := range d.Sections[0].Tables[0].Rows {
		if want := fmt.Sprintf("recorded %s, found %s: %s", row[1], row[2], row[3]); !strings.Contains(d.Verdicts[i], want) {
			t.Errorf("%q, and the table has %q", d.Verdicts[i], want)
		}
	}
	if found := d.Sections[0].Tables[0].Rows[1][2]; found != "1,230" {
		t.Errorf("1234.5 is written as %s", found)
	}
}
