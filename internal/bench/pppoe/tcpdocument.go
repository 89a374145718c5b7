package pppoe

import (
	"fmt"
	"slices"
	"time"

	"weir/internal/bench/cpu"
	"weir/internal/bench/iperf"
	"weir/internal/bench/paths"
	"weir/internal/bench/report"
	"weir/internal/host/hostinfo"
	"weir/internal/stats"
	"weir/internal/units"
)

// tcpDocument is the report of TCP.
func tcpDocument(o *Options, all []*stretch, tool *iperf.Tool, m hostinfo.Machine, started time.Time) *report.Document {
	d := &report.Document{Kind: "pppoe-tcp", Title: "What TCP carries over a PPPoE session", Command: o.Command, Version: o.Version, Started: started, Machine: m,
		Sketch: o.Runs < report.LeastRuns,
		Method: []string{
			fmt.Sprintf("iperf3 %s, CUBIC, %s at an offered %s Gbit/s for all connections together; what arrives counts. %s, medians with smallest and largest run. Each round starts each path anew.",
				tool.Version, units.Plural(int(o.Seconds.Seconds()), "second"), units.Digits(o.Rate/1e9, 3), units.Plural(o.Runs, "round")),
			"The session is that of weir's own client, for packets of 1,500 bytes (RFC 4638). At its other end a device of the far host has it, and without a session such a device has the packets, too: its cost is in both. Frames cross the wires as a card's, and the far host joins none (GRO), because the kernel joins none of a session.",
			fmt.Sprintf("CPU time: what both iperf3 took, and what interrupts took on all cores beyond what they took just before and after, for a gigabit that arrives. It has the far host's work in it: with a session its programs put the header in front and take it off, which the ratio blames on the firewall. Where a path's runs differ by more than half, there is no verdict. Runs that did not reach %.0f %% of the rate, or in which interrupts took over %.0f %% of a core without traffic, are left out.",
				reached*100, cpu.MostQuiet*100),
		}}
	c := tcpControl(all)
	d.Control = &c
	t := report.Table{Columns: []report.Column{{Name: "path", Words: true}, {Name: "direction", Words: true}, {Name: "connections"}, {Name: "arrived", Unit: "Gbit/s"}, {Name: "CPU", Unit: "s/Gbit"}}}
	for _, s := range all {
		for _, c := range s.crowds {
			if c.control {
				continue
			}
			cost := "–"
			if len(c.cpu) > 0 {
				cost = report.WithSpread(c.cpu)
				d.Measure(report.Lower, "s/Gbit", c.cpu, c.String(), "CPU")
			}
			t.Add(s.path == paths.WeirNATPPPoE, s.path, c.way(), units.Thousands(c.connections), report.WithSpread(c.rate), cost)
			d.Measure(report.Higher, "Gbit/s", c.rate, c.String())
			if c.short > 0 {
				d.Notes = append(d.Notes, fmt.Sprintf("%s: %s did not reach the rate.", c, units.Plural(c.short, "run")))
			}
			if c.drowned > 0 {
				d.Notes = append(d.Notes, fmt.Sprintf("%s: %s left out of the CPU time because of other work.", c, units.Plural(c.drowned, "run")))
			}
		}
	}
	d.Sections = []report.Section{{Title: "What arrived", Tables: []report.Table{t}}, {Title: "Ratios", Tables: []report.Table{tcpRatios(o, all, d)}}}
	return d
}

// tcpControl compares what was measured twice.
func tcpControl(all []*stretch) stats.Control {
	control := stats.NewControl()
	first, again := all[0].crowds[0], all[len(all)-1].crowds[0]
	control.Add(first.String(), first.rate, again.rate)
	return control
}

// tcpRatios are what the run is judged by. They go into the verdicts, too.
func tcpRatios(o *Options, all []*stretch, d *report.Document) report.Table {
	t := report.Table{Columns: []report.Column{{Name: "what", Words: true}, {Name: "direction", Words: true}, {Name: "ratio"}, {Name: "limit"}, {Name: "verdict", Words: true, Concludes: true}}}
	add := func(what string, c *crowd, above, below stats.Sample, limit float64, most bool) {
		if len(above) == 0 || len(below) == 0 {
			return
		}
		ratio, sign, verdict := above.Median()/below.Median(), "≥", "holds"
		if most {
			sign = "≤"
		}
		switch {
		case most && (unsteady(above) || unsteady(below)):
			verdict = "none, as the runs differ too much"
		case most && ratio > limit || !most && ratio < limit:
			verdict = "missed"
		}
		t.Add(true, what, c.way(), units.Digits(ratio, 3), fmt.Sprintf("%s %.2f", sign, limit), verdict)
		d.Verdicts = append(d.Verdicts, fmt.Sprintf("%s, %s: %s (%s %.2f: %s).", what, c.way(), units.Digits(ratio, 3), sign, limit, verdict))
	}
	one, many := o.Connections[0], o.Connections[len(o.Connections)-1]
	for _, down := range []bool{false, true} {
		in := findCrowd(all, paths.WeirNATPPPoE, one, down)
		if many != one {
			add(fmt.Sprintf("with a session, %s ÷ %s", units.Plural(one, "connection"), units.Thousands(many)), in, in.rate, findCrowd(all, paths.WeirNATPPPoE, many, down).rate, oneFloor, false)
		}
		for _, n := range slices.Compact([]int{one, many}) {
			in := findCrowd(all, paths.WeirNATPPPoE, n, down)
			add(fmt.Sprintf("CPU time of a gigabit with a session ÷ without, %s", units.Plural(n, "connection")), in, in.cpu, findCrowd(all, paths.WeirNAT, n, down).cpu, mostCPU, true)
		}
	}
	return t
}

// unsteady reports whether the CPU times of runs differ so much that their median is chance: where one connection's sleeping and waking
// take most of it, the runs are of two kinds.
func unsteady(s stats.Sample) bool { return slices.Max(s) > mostSpread*slices.Min(s) }

func findCrowd(all []*stretch, path string, connections int, down bool) *crowd {
	for _, s := range all {
		for _, c := range s.crowds {
			if c.path == path && c.connections == connections && c.down == down && !c.control {
				return c
			}
		}
	}
	panic("what is compared is measured")
}
