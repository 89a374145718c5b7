package qos

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/bench/option"
	"weir/internal/bench/report"
	"weir/internal/testenv"
)

// TestQueues loads a line of 20 Mbit/s in both directions, with weir's queues and with those
// of the kernel.
func TestQueues(t *testing.T) {
	testenv.NeedRoot(t)
	for _, program := range []string{"iperf3", "tc", "ip"} {
		testenv.NeedProgram(t, program)
	}
	o := Defaults()
	o.Cases, o.Paths, o.Rates, o.RTTs = []string{CaseRRUL}, []string{PathWeir, PathHeld, PathHTB, PathCake}, []option.Rate{20e6}, []time.Duration{10 * time.Millisecond}
	o.Runs, o.Seconds, o.Quick = 1, 4, true
	o.name, o.Command, o.Program = "weir-test-qos", "weir bench qos", testenv.BuildWeir(t)
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
	for _, err := range []error{d.WriteHTML(&b), d.WriteText(&b, 100)} {
		if err != nil {
			t.Error(err)
		}
	}
	b.Reset()
	if err := d.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if d, err = report.Read(&b); err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	for _, m := range d.Measurements {
		path := strings.Split(m.Name, "/")[2]
		paths[path] = true
		v := m.Runs.Median()
		switch {
		case strings.HasSuffix(m.Name, "/of-the-rate"), strings.HasSuffix(m.Name, "/of-the-rate-down"):
			if v < 0.5 || v > 1.1 { // a busy machine reaches less
				t.Errorf("%s: %v", m.Name, v)
			}
		case strings.Contains(m.Name, "Jain"):
			if v < 0.3 || v > 1 {
				t.Errorf("%s: %v", m.Name, v)
			}
		case strings.HasSuffix(m.Name, "/highest-250-ms-to-rate"):
			if v < 0.5 || v > 3 {
				t.Errorf("%s: %v", m.Name, v)
			}
		}
	}
	for _, path := range o.Paths {
		skipped := slices.ContainsFunc(d.Skipped, func(s report.Skip) bool { return s.What == path && s.Reason != "" })
		if paths[path] == skipped {
			t.Errorf("path %s: measured %v, skipped %v", path, paths[path], skipped)
		}
	}
	if !paths[PathWeir] || !paths[PathHeld] || d.Control == nil {
		t.Errorf("measured %v, control %v", paths, d.Control)
	}
}
