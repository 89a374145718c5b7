package ladder

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/bench/report"
	"weir/internal/testenv"
)

// short measures everything very briefly. These tests check that traffic arrives and
// becomes a report.
func short(t *testing.T, parts ...string) Options {
	t.Helper()
	o := Quick()
	o.Parts, o.Runs, o.Connections, o.ManyAtTop = parts, 1, []int{1}, false
	o.name, o.Command = "weir-test-ladder", "weir bench ladder"
	o.Program = testenv.BuildWeir(t)
	return o
}

// climbs runs the benchmark. It fails if the benchmark leaves anything behind, or if its
// report cannot be read back.
func climbs(t *testing.T, o Options) *report.Document {
	t.Helper()
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "iperf3")
	testenv.NeedProgram(t, "nft")
	d, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"/run/netns/" + o.name + "-*", "/run/" + o.name} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
	var b bytes.Buffer
	if err := d.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := report.Read(&b); err != nil {
		t.Error(err)
	}
	for _, write := range []error{d.WriteHTML(&b), d.WriteText(&b, 100)} {
		if write != nil {
			t.Error(write)
		}
	}
	return d
}

// overTime fails unless there are that many charts over time, each with traffic on every
// rung that it shows.
func overTime(t *testing.T, d *report.Document, want int) {
	t.Helper()
	found := 0
	for _, s := range d.Sections {
		for _, c := range s.Charts {
			if c.Times == nil {
				continue
			}
			found++
			for _, row := range c.Figures().Rows {
				if slices.Contains(row, "–") || strings.HasPrefix(row[1], "0 (") {
					t.Errorf("%s: %q", c.Title, row)
				}
			}
		}
	}
	if found != want {
		t.Errorf("%d charts over time, want %d", found, want)
	}
}

func names(d *report.Document) (found []string) {
	for _, m := range d.Measurements {
		found = append(found, m.Name)
	}
	return found
}

// TestLadder climbs all rungs once, with the offloads off and then on.
func TestLadder(t *testing.T) {
	o := short(t, PartTCP)
	o.Offloads = []string{"on", "off"}
	d := climbs(t, o)
	var want []string
	for _, offloads := range []string{"offloads-on", "offloads-off"} {
		for _, r := range rungs {
			want = append(want, "tcp/"+offloads+"/"+r.slug()+"/1")
		}
	}
	if got := names(d); !slices.Equal(got, want) {
		t.Errorf("measured %v, want %v", got, want)
	}
	for _, m := range d.Measurements {
		if v := m.Runs.Median(); !(v > 0.05 && v < 1000) {
			t.Errorf("%s: %v %s", m.Name, v, m.Unit)
		}
	}
	overTime(t, d, 2)
	if !d.Sketch || d.Control == nil || len(d.Verdicts) != 2 || len(d.Sections) != 2 {
		t.Errorf("sketch %v, control %v, verdicts %q, %d sections", d.Sketch, d.Control, d.Verdicts, len(d.Sections))
	}
}

// TestOtherParts measures everything except TCP and frames on weir's rungs.
func TestOtherParts(t *testing.T) {
	o := short(t, PartPairs, PartCPU, PartLatency, PartRPM)
	o.Firewalls, o.Rate = []string{Weir}, 500e6
	d := climbs(t, o)
	if d.Control == nil || d.Control.Path != "direct (offloads off)" {
		t.Errorf("control: %v", d.Control)
	}
	got, notes := strings.Join(names(d), "\n"), strings.Join(d.Notes, "\n")
	charts := 5
	if !strings.Contains(got, "cpu/") { // all its runs were left out; the reason is checked below
		charts--
	}
	overTime(t, d, charts)
	// A busy machine may hide a figure, but the report has to say so.
	const once, twice = "nat, weir, offloads off: 1 run left out of the ", "nat, weir, offloads off: 2 runs left out of the "
	silent := []string{once + "round-trips per minute", twice + "round-trips per minute"}
	for want, or := range map[string][]string{
		"pairs/offloads-off/direct/together": nil, "pairs/offloads-off/stateful-weir/together": nil, "pairs/offloads-off/nat-weir/together": nil,
		"cpu/offloads-off/nat-weir":            {once + "CPU time", "nat, weir, offloads off: runs that did not reach the fixed rate"},
		"rtt-idle/offloads-off/direct/p50":     nil,
		"rtt-loaded/offloads-off/nat-weir/p99": {once + "loaded delays"}, "udp-loaded/offloads-off/nat-weir/p50": {once + "loaded delays"},
		"rpm/offloads-off/nat-weir/download": silent, "rpm/offloads-off/nat-weir/upload": silent,
	} {
		said := slices.ContainsFunc(or, func(note string) bool { return strings.Contains(notes, note) })
		if !strings.Contains(got, want) && !said {
			t.Errorf("%s was not measured; there are\n%s\nand the notes\n%s", want, got, notes)
		}
	}
	for _, m := range d.Measurements {
		if v := m.Runs.Median(); !(v > 0) && !strings.HasPrefix(m.Name, "cpu/") {
			t.Errorf("%s: %v %s", m.Name, v, m.Unit)
		}
	}
}
