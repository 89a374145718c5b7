package qoscost

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/bench/paths"
	"weir/internal/bench/report"
	"weir/internal/stats"
	"weir/internal/units"
)

// document returns the report: forward's figures, and the story before them.
func (r *Report) document() *report.Document {
	d := r.Forward.Document()
	d.Kind, d.Title = "qoscost", "What queues cost a router"
	d.Notes = append(d.Notes, r.notes...)
	d.Verdicts = append(r.verdicts(), d.Verdicts...)
	d.Method = append(d.Method,
		"Queues are those of the line to the internet, in both directions, with the same classes on both sides: htb.sh and qos.conf, which are attached. Their rate is so high that nothing is dropped; after each run their counters must have seen every frame.",
		fmt.Sprintf("Rising rates: frames come in from the internet. Each core waits for the moment of the next frame, so CPU is the time in which it did not wait; it includes the benchmark's own part, which the generator's line shows. The line of the story carries %.0f %% of what one core of the kernel forwards without queues. There queues have that rate.", lineShare*100),
	)
	for _, row := range r.Forward.Rows {
		d.Measure(report.Higher, "Mpps", row.Mpps, fmt.Sprintf("%s, %s", row.Path, units.Plural(row.Cores, "core")))
	}
	for _, s := range r.stories {
		if len(s.line) > 0 && s.path != paths.Generator {
			d.Measure(report.Higher, "Mpps", s.line, fmt.Sprintf("at the line's rate: %s, %s", s.path, units.Plural(s.cores, "core")))
		}
	}
	if section := r.section(); len(section.Charts) > 0 {
		d.Sections = append([]report.Section{section}, d.Sections...)
	}
	if t := r.floors(); len(t.Rows) > 0 {
		d.Sections = append([]report.Section{{Title: "What queues may cost", Tables: []report.Table{t}}}, d.Sections...)
	}
	return d
}

// quotient divides the medians of a path by those of another.
func (r *Report) quotient(of, to string, ofCores, toCores int) (float64, bool) {
	a, _ := r.median(of, ofCores)
	b, _ := r.median(to, toCores)
	if a == 0 || b == 0 {
		return 0, false
	}
	return a / b, true
}

// more is what a path takes of a core for a frame beyond another one, in ns.
func (r *Report) more(of, to string, cores int) (ns float64, ok bool) {
	with, _ := r.median(of, cores)
	without, _ := r.median(to, cores)
	if with == 0 || without == 0 {
		return 0, false
	}
	return float64(cores) * 1000 * (1/with - 1/without), true
}

// lineKept is what a path carries of what another one does, if the line's rate is offered.
func (r *Report) lineKept(of, to string, cores int) (ratio float64, ok bool) {
	on, off := r.find(of, cores), r.find(to, cores)
	if on == nil || off == nil || len(on.line) == 0 || len(off.line) == 0 {
		return 0, false
	}
	return on.line.Median() / off.line.Median(), true
}

// verdicts are what this run says about queues.
func (r *Report) verdicts() (all []string) {
	say := func(format string, about ...any) { all = append(all, fmt.Sprintf(format, about...)) }
	for _, cores := range r.cores() {
		on := units.Plural(cores, "core")
		if kept, ok := r.quotient(paths.WeirQoS, paths.Weir, cores, cores); ok {
			more, _ := r.more(paths.WeirQoS, paths.Weir, cores)
			say("On %s, weir with queues forwards %.3f of what it does without: they cost %s ns a frame.", on, kept, report.Figure(more))
		}
		if kept, ok := r.quotient(paths.KernelHTB, paths.Kernel, cores, cores); ok {
			more, _ := r.more(paths.KernelHTB, paths.Kernel, cores)
			say("On %s, the kernel with HTB forwards %.2f of what it does without: %s ns a frame.", on, kept, report.Figure(more))
		}
		if times, ok := r.quotient(paths.WeirQoS, paths.KernelHTB, cores, cores); ok {
			say("With queues, on %s, weir forwards %.1f times what the kernel does.", on, times)
		}
		for _, path := range []string{paths.WeirQoS, paths.KernelHTB} {
			if times, ok := r.quotient(path, path, cores, 1); ok && cores > 1 {
				say("%s on %d cores forwards %.2f times what it does on one.", path, cores, times)
			}
		}
		for _, pair := range [][2]string{{paths.WeirQoS, paths.Weir}, {paths.KernelHTB, paths.Kernel}} {
			if kept, ok := r.lineKept(pair[0], pair[1], cores); ok {
				say("At the line's rate (%s Mpps), on %s, %s carries %.3f of what %s does.", report.Figure(r.Line), on, pair[0], kept, pair[1])
			}
		}
	}
	return all
}

func (r *Report) cores() (all []int) {
	for _, row := range r.Forward.Rows {
		if !slices.Contains(all, row.Cores) {
			all = append(all, row.Cores)
		}
	}
	return all
}

func (r *Report) find(path string, cores int) *story {
	for _, s := range r.stories {
		if s.path == path && s.cores == cores {
			return s
		}
	}
	return nil
}

// section is the story: rate and CPU, with queues and without.
func (r *Report) section() report.Section {
	s := report.Section{Title: "Queues turned on, as in 2019"}
	const quoted = "In 2019 IPFire told of a router whose line of 400 Mbit/s took 20 % of its CPU. With queues it carried 120 Mbit/s at less than half of the CPU: all cores waited for one lock (IMQ's). With an IFB instead it carried 390. That lock is gone; this is what is left of it with today's kernel."
	var bars report.BarGroup
	for _, cores := range r.cores() {
		var rates, loads []report.Series
		for _, told := range r.stories {
			if told.cores != cores {
				continue
			}
			ours := strings.HasPrefix(told.path, paths.Weir)
			rate, load := report.Series{Name: told.path, Ours: ours}, report.Series{Name: told.path, Ours: ours}
			for _, one := range told.rates {
				if len(one.busy) == 0 {
					continue
				}
				percent := make(stats.Sample, len(one.busy))
				for i, busy := range one.busy {
					percent[i] = busy * 100
				}
				rate.Points = append(rate.Points, report.Point{X: stats.Round(one.offered), Runs: one.forwarded})
				load.Points = append(load.Points, report.Point{X: stats.Round(one.forwarded.Median()), Runs: percent})
			}
			slices.SortStableFunc(load.Points, func(a, b report.Point) int { return int((a.X - b.X) * 1e6) })
			if told.path != paths.Generator {
				rates = append(rates, rate)
				if len(told.line) > 0 {
					bars.Bars = append(bars.Bars, report.Bar{Name: told.path + ", " + units.Plural(cores, "core"), Runs: told.line, Ours: ours})
				}
			}
			loads = append(loads, load)
		}
		if len(loads) == 0 {
			continue
		}
		on := units.Plural(cores, "core")
		s.Charts = append(s.Charts,
			report.Chart{Title: "Rate and CPU, " + on, Note: quoted, Curves: &report.Curves{
				X: report.Axis{Label: "forwarded", Unit: "Mpps"}, Y: report.Axis{Label: "CPU of " + on, Unit: "%"}, Series: loads}},
			report.Chart{Title: "What is forwarded of what is offered, " + on, Curves: &report.Curves{
				X: report.Axis{Label: "offered", Unit: "Mpps"}, Y: report.Axis{Label: "forwarded", Unit: "Mpps"}, Series: rates}})
	}
	if len(bars.Bars) > 0 {
		s.Charts = append(s.Charts, report.Chart{Title: "The line's rate, with queues of that rate and without",
			Note: fmt.Sprintf("The line carries %s Mpps: frames of 64 bytes at %s Mbit/s.", report.Figure(r.Line), report.Figure(r.Line*lineBits)),
			Bars: &report.Bars{Label: "million frames per second", Unit: "Mpps", Better: report.Higher, Groups: []report.BarGroup{bars}}})
	}
	return s
}
