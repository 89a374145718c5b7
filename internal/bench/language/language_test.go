package language

import (
	"strings"
	"testing"

	"weir/internal/stats"
	"weir/pf/resolve"
)

// TestLanguageFiles checks that the measured files expand to the promised number of
// rules.
func TestLanguageFiles(t *testing.T) {
	for _, kind := range kinds {
		rules, list := resolve.Load("bench.conf", kind.file(3000), nil)
		if rules == nil {
			t.Fatalf("%s: %v", kind.name, list.Err())
		}
		if n := len(rules.Rules); n != 3000 {
			t.Errorf("%s: %d rules, want 3000", kind.name, n)
		}
	}
}

func TestLanguageReport(t *testing.T) {
	for _, test := range []struct {
		growth float64
		bytes  int
		ok     bool
		said   string
	}{
		{13, 3000, true, "take at most 13.0 times as long (some, -o basic), within the bound of 13"},
		{13.1, 3000, false, "take at most 13.1 times as long (some, -o basic), over the bound of 13"},
		{13, 3001, false, "A rule takes at most 3,001 bytes (some, -o basic), over the bound of 3,000"},
	} {
		cost := Cost{Kind: "some", Optimized: true, Seconds: []stats.Sample{{1}, {test.growth}}, Bytes: test.bytes}
		r := &Report{Rules: []Cost{cost}, Table: TableCost{Seconds: stats.Sample{1}}, Control: stats.NewControl()}
		if r.OK() != test.ok {
			t.Errorf("%v times, %d bytes: OK is %t", test.growth, test.bytes, r.OK())
		}
		var b strings.Builder
		if err := r.Document().WriteText(&b, 200); err != nil || !strings.Contains(b.String(), test.said) {
			t.Errorf("%v, prints %s; want %q", err, b.String(), test.said)
		}
	}
}

func TestLanguageOptions(t *testing.T) {
	for runs, ok := range map[int]bool{0: false, 1: true, 1000: true, 1001: false} {
		if err := (&Options{Runs: runs}).Check(); (err == nil) != ok {
			t.Errorf("%d runs: %v", runs, err)
		}
	}
}

// The table and the chart write a time alike, whatever it is.
func TestFigures(t *testing.T) {
	r := &Report{Table: TableCost{Seconds: stats.Sample{1234.5}}, Control: stats.NewControl(), Rules: []Cost{
		{Kind: "some", Seconds: []stats.Sample{{0.04}, {99.96}}, Bytes: 1234}, {Kind: "others", Seconds: []stats.Sample{{1.2345}, {1234.5}}, Bytes: 999},
	}}
	d := r.Document()
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	if text := d.Sections[0].Text[0]; !strings.Contains(text, ": 1,230 s,") {
		t.Errorf("%q writes 1234.5 s in another way", text)
	}
}
