package pppoe

import (
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/bench/iperf"
	"weir/internal/bench/paths"
	"weir/internal/bench/report"
	"weir/internal/host/hostinfo"
	"weir/internal/stats"
	"weir/internal/testenv"
)

// TestTCP has iperf3 send over a session both ways, very briefly.
func TestTCP(t *testing.T) {
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "iperf3")
	o := Defaults()
	o.Connections, o.Rate, o.Runs, o.Seconds = []int{1, 4}, 50e6, 1, time.Second
	o.Program, o.name = testenv.BuildWeir(t), "weir-test-pppoe"
	d, err := TCP(t.Context(), o)
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
	for _, path := range []string{paths.WeirNAT, paths.WeirNATPPPoE} {
		for _, way := range []string{"from the LAN", "to the LAN"} {
			for _, n := range []string{"1 connection", "4 connections"} {
				name := strings.Join([]string{path, n, way}, ", ")
				i := slices.IndexFunc(d.Measurements, func(m report.Measurement) bool { return m.Name == name })
				if i < 0 || d.Measurements[i].Runs.Median() < 0.01 {
					t.Errorf("%s: %v", name, d.Measurements)
				}
			}
		}
	}
}

// TestTCPVerdicts: one connection has to carry what many do, and a gigabit may take little more with a session.
func TestTCPVerdicts(t *testing.T) {
	o := Defaults()
	all := o.stretches()
	for _, s := range all {
		for _, c := range s.crowds {
			c.rate, c.cpu = stats.Sample{1}, stats.Sample{0.5}
		}
	}
	findCrowd(all, paths.WeirNATPPPoE, 1, false).rate = stats.Sample{0.94}
	findCrowd(all, paths.WeirNATPPPoE, 1, true).cpu = stats.Sample{0.53}
	findCrowd(all, paths.WeirNATPPPoE, 64, true).cpu = stats.Sample{0.3, 0.3, 1.2}
	d := tcpDocument(&o, all, &iperf.Tool{}, hostinfo.Machine{}, time.Now())
	var got []string
	for _, row := range d.Sections[1].Tables[0].Rows {
		got = append(got, row[len(row)-1])
	}
	if want := []string{"missed", "holds", "holds", "holds", "missed", "none, as the runs differ too much"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The table writes rates and times as charts do, whatever they are.
func TestTCPFigures(t *testing.T) {
	o := Defaults()
	all := o.stretches()
	for _, s := range all {
		for i, c := range s.crowds {
			c.rate, c.cpu = stats.Sample{[]float64{0.04, 99.96, 1234.5}[i%3], 1234.5}, stats.Sample{0.04, 99.96}
		}
	}
	if err := tcpDocument(&o, all, &iperf.Tool{}, hostinfo.Machine{}, time.Now()).CheckFigures(); err != nil {
		t.Error(err)
	}
}
