package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"weir/internal/bench/report"
	"weir/internal/host/hostinfo"
	"weir/internal/stats"
)

// source returns a document with these measurements, read as from a file.
func source(t *testing.T, name string, change func(*report.Document), all ...report.Measurement) *Source {
	t.Helper()
	d := &report.Document{Kind: "test", Title: "Test", Machine: hostinfo.Machine{CPU: "one", Cores: 2},
		Control: &stats.Control{Path: "weir", OK: true}, Measurements: all}
	if change != nil {
		change(d)
	}
	var text strings.Builder
	if err := d.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	s, err := Read(name, strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func measured(name, better string, runs ...float64) report.Measurement {
	return report.Measurement{Name: name, Unit: "u", Better: better, Runs: runs}
}

func TestVerdicts(t *testing.T) {
	a := source(t, "a.json", nil,
		measured("rate", report.Higher, 100, 101, 102, 100, 99),
		measured("time", report.Lower, 100, 101, 102, 100, 99),
		measured("worse rate", report.Higher, 100, 101, 102, 100, 99),
		measured("worse time", report.Lower, 100, 101, 102, 100, 99),
		measured("same", report.Lower, 100, 101, 102, 100, 99),
		measured("gone", report.Lower, 1))
	b := source(t, "b.json", nil,
		measured("new", report.Lower, 1),
		measured("same", report.Lower, 100, 99, 102, 101, 100),
		measured("rate", report.Higher, 120, 121, 122, 120, 119),
		measured("time", report.Lower, 80, 81, 82, 80, 79),
		measured("worse rate", report.Higher, 80, 81, 82, 80, 79),
		measured("worse time", report.Lower, 120, 121, 122, 120, 119))
	r, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"rate": Improvement, "time": Improvement, "worse rate": Regression, "worse time": Regression, "same": Unproven}
	for _, row := range r.Rows {
		if row.Verdict != want[row.Name] {
			t.Errorf("%s: %s, want %s (%+v)", row.Name, row.Verdict, want[row.Name], row.Test)
		}
	}
	if len(r.Rows) != len(want) || r.Regressions != 2 || fmt.Sprint(r.OnlyA, r.OnlyB) != "[gone] [new]" {
		t.Errorf("%d rows, %d regressions, only %v and %v", len(r.Rows), r.Regressions, r.OnlyA, r.OnlyB)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"worse rate (u, higher is better)\nx a.json\n+ b.json\n+--", "Difference at 95.0% confidence\n\t-20 +/- ",
		"=> regression of -19.9 %", "=> unproven\n", "only in a.json: gone", "5 comparisons at 95 % for all together (Holm): 2 regressions, 2 improvements"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "machines differ") {
		t.Error("the machines are the same")
	}
}

// A figure found by a search is known to its step. One limited by the generator is a
// lower bound. Neither proves more than that.
func TestBounds(t *testing.T) {
	searched := func(name string, atLeast bool, runs ...float64) report.Measurement {
		m := measured(name, report.Higher, runs...)
		m.Resolution, m.AtLeast = 2, atLeast
		return m
	}
	a := source(t, "a.json", nil, searched("steps", false, 100, 100, 100), searched("large", false, 100, 100, 100),
		searched("both", true, 100, 100, 100), searched("fell", true, 100, 100, 100), searched("a bound, b more", true, 100, 100, 100),
		searched("b bound, but less", false, 100, 100, 100), searched("rose", false, 100, 100, 100))
	b := source(t, "b.json", nil, searched("steps", false, 99.7, 99.7, 99.7), searched("large", false, 90, 90, 90),
		searched("both", true, 50, 50, 50), searched("fell", false, 80, 80, 80), searched("a bound, b more", false, 120, 120, 120),
		searched("b bound, but less", true, 80, 80, 80), searched("rose", true, 120, 120, 120))
	r, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"steps": Unproven, "large": Regression, "fell": Regression, "a bound, b more": Unproven,
		"b bound, but less": Unproven, "rose": Improvement}
	for _, row := range r.Rows {
		if row.Verdict != want[row.Name] {
			t.Errorf("%s: %s, want %s (%+v)", row.Name, row.Verdict, want[row.Name], row.Test)
		}
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != len(want) || fmt.Sprint(r.Limited) != "[both]" {
		t.Errorf("%d rows, limited %v", len(r.Rows), r.Limited)
	}
	for _, want := range []string{"found in steps of 2", "a.json knows only the least value", "not compared, as in both who measured was the limit: both",
		"=> unproven: the true value may be on either side"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// Forty comparisons of equal things: by single tests most such reports would have a
// regression, with the correction one in twenty.
func TestManyComparisons(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	const reports, comparisons = 300, 40
	single, together := 0, 0
	for range reports {
		var of, to []report.Measurement
		for i := range comparisons {
			m := measured(fmt.Sprint(i), report.Higher)
			n := m
			for range 5 {
				m.Runs, n.Runs = append(m.Runs, 100+random.NormFloat64()), append(n.Runs, 100+random.NormFloat64())
			}
			of, to = append(of, m), append(to, n)
		}
		r := &Result{}
		if err := r.pair(of, to); err != nil {
			t.Fatal(err)
		}
		r.decide()
		for _, row := range r.Rows {
			if row.Test.Proven && row.Test.Difference < 0 {
				single++
				break
			}
		}
		if r.Regressions > 0 {
			together++
		}
	}
	t.Logf("of %d: %d by single tests, %d by all together", reports, single, together)
	if single < reports/3 || together > reports/20 {
		t.Errorf("false regressions in %d of %d reports, %d by single tests", together, reports, single)
	}
}

func TestRefused(t *testing.T) {
	m := measured("rate", report.Higher, 1, 2, 3)
	good := source(t, "good.json", nil, m)
	for _, c := range []struct {
		name string
		b    *Source
		want string
	}{
		{"control", source(t, "bad.json", func(d *report.Document) {
			d.Control.Refuse("weir differs from itself by 9.0 %")
		}, m), "bad.json proves nothing: its control failed: weir differs from itself by 9.0 %"},
		{"nothing in common", source(t, "b.json", nil, measured("other", report.Higher, 1, 2, 3)), errNothing.Error()},
		{"unit", source(t, "b.json", func(d *report.Document) { d.Measurements[0].Unit = "ms" }, m), "the other in ms"},
	} {
		if _, err := Compare(good, c.b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	for _, text := range []string{"", "[]", `{"machine":{}}`, `{"measurements":[{"name":"a","better":"","runs":{"runs":[1]}}]}`} {
		if _, err := Read("x.json", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "x.json") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Measurements that a report does not trust are named and not compared.
func TestUntrusted(t *testing.T) {
	restless, quiet := measured("restless", report.Higher, 9, 9, 9), measured("quiet", report.Higher, 1, 1, 1)
	doubt := func(d *report.Document) { d.Measurements[0].Untrusted = true }
	a, b := source(t, "a.json", nil, restless, quiet), source(t, "b.json", doubt, measured("restless", report.Higher, 1, 1, 1), quiet)
	r, err := Compare(a, b)
	if err != nil || r.Regressions != 0 || len(r.Rows) != 1 || len(r.Untrusted) != 1 || r.Untrusted[0] != "restless" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Compare(source(t, "a.json", nil, restless), source(t, "b.json", doubt, restless)); !errors.Is(err, ErrUntrusted) {
		t.Errorf("of nothing that is trusted: %v", err)
	}
}

// Reports of forward with rows only, and different machines.
func TestRows(t *testing.T) {
	file := func(name, cpu string, mpps ...float64) *Source {
		runs, err := json.Marshal(stats.Sample(mpps))
		if err != nil {
			t.Fatal(err)
		}
		s, err := Read(name, strings.NewReader(`{"command":"weir bench forward","machine":{"cpu":"`+cpu+`","cores":2},
			"rows":[{"path":"weir","hook":"xdp","frame":64,"flows":1000,"family":4,"proto":"udp","cores":1,"direction":"one",
			"sink":"far","mpps":`+string(runs)+`,"ns":1,"net_ns":null,"new_per_s":2,"new_per_s_runs":`+string(runs)+`}],"control":{"path":"weir","difference":0,"ok":true}}`))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	r, err := Compare(file("a.json", "one", 3, 3.1, 3.05), file("b.json", "two", 2, 2.1, 2.05))
	if err != nil {
		t.Fatal(err)
	}
	if r.Regressions != 2 || r.Rows[1].Name != r.Rows[0].Name+": new connections" || r.Rows[0].Name != "weir at xdp, 64 bytes, 1,000 flows, IPv4, udp, 1 core, one direction, sink far" {
		t.Errorf("%+v", r.Rows)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "The machines differ, and with them all absolute figures: CPU: one / two\n") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestEmptyFile: an empty file is called so.
func TestEmptyFile(t *testing.T) {
	if _, err := Read("before.json", strings.NewReader("")); err == nil || !strings.HasSuffix(err.Error(), "it is empty") {
		t.Errorf("%v", err)
	}
}
