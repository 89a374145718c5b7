package qos

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"weir/internal/bench/option"
	"weir/internal/testenv"
)

// TestBesideCake loads a line of 2 Mbit/s with weir's queues and with CAKE, where the kernel has that. An emulated machine
// tells nothing of speed: what is compared is whether each keeps the rate, both ways, and shares it fairly. docs/queues.md
// has a run with more paths.
func TestBesideCake(t *testing.T) {
	testenv.NeedRoot(t)
	if exec.Command("modprobe", "--quiet", "sch_cake").Run() != nil {
		testenv.SkipOutside(t, "this kernel has no CAKE; the emulated one has")
	}
	o := Defaults()
	o.Cases, o.Paths, o.Rates, o.RTTs = []string{CaseRRUL}, []string{PathWeir, PathCake}, []option.Rate{2e6}, []time.Duration{50 * time.Millisecond}
	o.Runs, o.Seconds, o.Quick = 1, 5, true
	o.name, o.Command, o.Program = "weir-test-cake", "weir bench qos", testenv.BuildWeir(t)
	d, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := d.WriteText(&text, 120); err != nil {
		t.Error(err)
	}
	t.Log("\n" + text.String())
	testenv.NothingLeft(t, o.name)
	seen := make(map[string]int)
	for _, m := range d.Measurements {
		path, v := strings.Split(m.Name, "/")[2], m.Runs.Median()
		switch {
		case strings.HasSuffix(m.Name, "/of-the-rate"), strings.HasSuffix(m.Name, "/of-the-rate-down"):
			if seen[path]++; v < 0.5 || v > 1.1 {
				t.Errorf("%s: %.3f", m.Name, v)
			}
		case strings.Contains(m.Name, "Jain") && strings.HasSuffix(m.Name, "run"):
			if seen[path]++; v < 0.7 {
				t.Errorf("%s: %.3f", m.Name, v)
			}
		}
	}
	for _, path := range o.Paths {
		if seen[path] < 3 {
			t.Errorf("path %s has %d of 3 figures: %v", path, seen[path], d.Skipped)
		}
	}
}
