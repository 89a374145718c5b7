package forward

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/bench/paths"
	"weir/internal/bench/report"
	"weir/internal/bench/traffic"
	"weir/internal/host/hostinfo"
	"weir/internal/stats"
)

// example returns a report of one case and three paths.
func example(t *testing.T) *Report {
	t.Helper()
	c := traffic.Case{Frame: 64, Flows: 1000, Family: 4, Protocol: traffic.UDP, Cores: 1, Direction: traffic.OneWay, Sink: traffic.Egress}
	sample := func(name string, mpps stats.Sample, newPerS ...float64) *samples {
		p, err := paths.New(name, paths.WeirOptions{Hook: "xdp"})
		if err != nil {
			t.Fatal(err)
		}
		return &samples{path: p, mpps: mpps, newPerS: newPerS}
	}
	r := &Report{Command: "weir bench forward", Machine: hostinfo.Machine{CPU: "Test", Cores: 2, Kernel: "6.18", Governor: "none"},
		Control: stats.Control{Path: paths.WeirNAT, Difference: 0.012, OK: true}}
	r.add(c, rows(c, []*samples{
		sample(paths.Generator, stats.Sample{10, 10.5, 9.5}),
		sample(paths.NftNAT, stats.Sample{0.5, 0.5, 0.4}, 200_000),
		sample(paths.WeirNAT, stats.Sample{4, 5, 3}, 600_000),
	}))
	return r
}

func TestRows(t *testing.T) {
	r := example(t)
	weir := r.Rows[2]
	if weir.NS != 250 || *weir.NetNS != 150 {
		t.Errorf("weir-nat: %v ns, %v net; want 250 and 150", weir.NS, *weir.NetNS)
	}
	if weir.Sink != traffic.Far || r.Rows[1].Sink != traffic.Egress {
		t.Errorf("sinks %s and %s: an XDP path has no egress", weir.Sink, r.Rows[1].Sink)
	}
	if len(r.Ratios) != 1 {
		t.Fatalf("%d ratios, want 1", len(r.Ratios))
	}
	if ratio := r.Ratios[0]; ratio.Mpps != 8 || *ratio.NewPerS != 3 || *ratio.NetNS != stats.Round(150.0/1900) {
		t.Errorf("weir-nat to nft-nat: %v, %v, %v", ratio.Mpps, *ratio.NewPerS, *ratio.NetNS)
	}
}

func TestTwoCoresShareTime(t *testing.T) {
	if got := nanoseconds(traffic.Case{Cores: 2}, stats.Sample{4}); got != 500 {
		t.Errorf("4 Mpps on two cores: %v ns of one core, want 500", got)
	}
}

// The keys are an interface: other programs read them.
func TestJSONKeys(t *testing.T) {
	var b bytes.Buffer
	if err := example(t).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var v struct {
		Machine map[string]any   `json:"machine"`
		Rows    []map[string]any `json:"rows"`
		Ratios  []map[string]any `json:"ratios"`
		Control map[string]any   `json:"control"`
	}
	if err := json.Unmarshal(b.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	keys := func(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
	shared := []string{"cores", "direction", "family", "flows", "frame", "mpps", "net_ns", "new_per_s", "proto", "sink"}
	row := append([]string{"hook", "ns", "path"}, shared...)
	ratio := append([]string{"new_test", "of", "test", "to"}, shared...)
	slices.Sort(row)
	slices.Sort(ratio)
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"row", keys(v.Rows[0]), row},
		{"ratio", keys(v.Ratios[0]), ratio},
		{"control", keys(v.Control), []string{"difference", "ok", "path"}},
		{"mpps", keys(v.Rows[0]["mpps"].(map[string]any)), []string{"max", "median", "min", "runs"}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("keys of a %s (-want +got):\n%s", c.what, diff)
		}
	}
	if v.Rows[0]["net_ns"] != nil {
		t.Error("the generator has a net cost")
	}
}

func TestText(t *testing.T) {
	r := example(t)
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Test, 2 cores",
		"64 bytes, 1,000 flows, IPv4, udp, 1 core, one direction, sink egress",
		"weir-nat   xdp      4.00   50.0 %       250     150  600,000",
		"weir-nat : nft-nat = 8.00 in frames",
		"weir-nat measured twice differs by 1.2 %",
		"flatters XDP",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
}

// The chart, the tables and the terminal write the same figures.
func TestOneRounding(t *testing.T) {
	r := example(t)
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Mpps = stats.Sample{0.39571, 1.24515, 1.24515, 2.71828}
		row.NS, row.NewPerS, row.NewRuns = 803.12, &[]float64{123_456}[0], stats.Sample{123_456}
		net := 1234.5
		row.NetNS = &net
	}
	d := r.Document()
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	var text, page strings.Builder
	if err := errors.Join(r.WriteText(&text), d.WriteMarkdown(&page, "")); err != nil {
		t.Fatal(err)
	}
	for _, figure := range []string{"1.25", "803", "1,230", "123,000"} {
		if !strings.Contains(text.String(), figure) || !strings.Contains(page.String(), figure) {
			t.Errorf("%s is not in both:\n%s\n%s", figure, text.String(), page.String())
		}
	}
	for _, figure := range []string{"1.245", "1,234", "1,235", "123,456"} {
		if strings.Contains(text.String(), figure) || strings.Contains(page.String(), figure) {
			t.Errorf("%s is in one", figure)
		}
	}
	d.Sections[len(d.Sections)-1].Tables[0].Rows[0][2] = "1.2451"
	if err := d.CheckFigures(); err == nil {
		t.Error("other digits in a table are not found")
	}
}

// The tables and the charts write a figure alike, whatever it is. A path may take less than the generator.
func TestFigures(t *testing.T) {
	r := example(t)
	for i := range r.Rows {
		row, net := &r.Rows[i], []float64{-3.126, 0.04, 1234.5}[i%3]
		row.Mpps = stats.Sample{[]float64{0.04, 99.96, 1234.5}[i%3], 10.004, 0.81}
		row.NetNS, row.NewPerS, row.NewRuns = &net, &row.Mpps[0], row.Mpps[:1]
	}
	if err := r.Document().CheckFigures(); err != nil {
		t.Error(err)
	}
}

// A run whose control failed draws no conclusions.
func TestNoVerdict(t *testing.T) {
	r := example(t)
	r.Control.OK, r.Control.Why = false, "the reason"
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "weir-nat : nft-nat") || !strings.Contains(b.String(), "no verdict: the reason") {
		t.Errorf("a verdict without a control:\n%s", b.String())
	}
}

// TestCurves: only what was varied is drawn, for known connections and for new ones.
func TestCurves(t *testing.T) {
	r := example(t)
	if s := r.curveSection(); len(s.Charts) != 0 {
		t.Errorf("one case has %d curves", len(s.Charts))
	}
	c := r.sections[0].c
	c.Rules = 100
	p, err := paths.New(paths.WeirNAT, paths.WeirOptions{Hook: "xdp"})
	if err != nil {
		t.Fatal(err)
	}
	r.add(c, rows(c, []*samples{{path: p, mpps: stats.Sample{4}, newPerS: stats.Sample{500_000}}}))
	charts := r.curveSection().Charts
	if len(charts) != 2 || charts[0].Title != "What more rules cost a known connection" || charts[1].Title != "What more rules cost a new connection" {
		t.Fatalf("%d charts: %+v", len(charts), charts)
	}
	if note := charts[1].Note; note != "64 bytes, 1,000 flows, IPv4, udp, 1 core, one direction, sink egress" {
		t.Errorf("what is the same: %q", note)
	}
	var names []string
	for _, line := range charts[1].Curves.Series {
		names = append(names, line.Name)
	}
	if diff := cmp.Diff([]string{paths.NftNAT, paths.WeirNAT}, names); diff != "" {
		t.Errorf("paths that open connections (-want +got):\n%s", diff)
	}
	want := []report.Point{{X: 0, Runs: stats.Sample{600_000}}, {X: 100, Runs: stats.Sample{500_000}}}
	if diff := cmp.Diff(want, charts[1].Curves.Series[1].Points); diff != "" {
		t.Errorf("weir-nat (-want +got):\n%s", diff)
	}
	if err := r.Document().Check(); err != nil {
		t.Error(err)
	}
	for _, verdict := range r.verdicts() {
		if strings.Contains(verdict, "new connections") && !strings.Contains(verdict, "3.0 times as many") {
			t.Errorf("%q", verdict)
		}
	}
}

// TestHeadline: what is not proven does not begin with a claim, and a proven ratio has no
// doubt behind it.
func TestHeadline(t *testing.T) {
	r := example(t)
	all := strings.Join(r.verdicts(), "\n")
	if !strings.HasPrefix(all, "With NAT, weir forwards 8.0 times as many frames as nftables.") {
		t.Errorf("proven:\n%s", all)
	}
	for _, c := range []struct {
		mpps stats.Sample
		says string
	}{
		{stats.Sample{4}, "Not proven: too few runs. With NAT, weir forwards"},
		{stats.Sample{0.1, 0.9, 0.5}, "Not proven: this run would have shown a difference of "},
	} {
		r := example(t)
		r.Rows[2].Mpps = c.mpps
		r.Ratios = ratios(r.sections[0].c, r.Rows)
		if got := r.verdicts()[0]; !strings.HasPrefix(got, c.says) || strings.Contains(got, "; ") {
			t.Errorf("%v: %s", c.mpps, got)
		}
	}
}

// TestCaptions: captions name only the paths that were measured.
func TestCaptions(t *testing.T) {
	r := example(t)
	note := r.rateSection().Charts[0].Note
	if !strings.Contains(note, "Generator: ") || strings.Contains(note, "Redirect") {
		t.Errorf("caption: %q", note)
	}
	for _, text := range r.method() {
		if strings.Contains(text, "Redirect") || strings.Contains(text, "kernel's path") {
			t.Errorf("method: %q", text)
		}
	}
}
