package stages

import (
	"fmt"

	"weir/internal/bench/profile"
	"weir/internal/bench/report"
	"weir/internal/stats"
	"weir/internal/units"
)

// Document returns the report as a document.
func (s *Report) Document() *report.Document {
	r := s.report
	d := &report.Document{Kind: "stages", Title: "What each stage of the packet path costs", Command: r.Command,
		Started: r.Started, Machine: r.Machine, Control: &r.Control, Sketch: r.Sketch(), Notes: r.Notes,
		Method: []string{
			"The programs are those that weir loads, unchanged, while they forward frames as in weir bench forward.",
			"The kernel's timer interrupts the core some 4,000 times a second (cpu-clock). The interrupted address, or the nearest caller in weir's program, belongs to a line of the source, and each file or function belongs to a stage.",
			"A stage's share of the samples is its share of a frame's time. A wait for memory is counted where it happens, and simultaneous work of a core is counted once. Instructions that the compiler moved are counted where they came from.",
			"Subtracting the generator path of the same run shows what weir adds, which checks the sum.",
		}}
	var groups []report.BarGroup
	for i := range s.Paths {
		p := &s.Paths[i]
		name := p.name()
		d.Verdicts = append(d.Verdicts, p.verdict())
		d.Sections = append(d.Sections, report.Section{Title: name, Tables: []report.Table{p.table()}})
		group := report.BarGroup{Name: name}
		for _, stage := range profile.Stages {
			if p.Stages[stage].Max() > 0 {
				group.Bars = append(group.Bars, report.Bar{Name: stage, Runs: p.Stages[stage], Ours: true})
				d.Measure(report.Lower, "ns", p.Stages[stage], "stages: "+name+": "+stage)
			}
		}
		d.Measure(report.Lower, "ns", p.own(), "stages: "+name+": all of weir")
		groups = append(groups, group)
	}
	chart := report.Chart{Title: "What a stage costs", Bars: &report.Bars{Label: "nanoseconds per frame", Unit: "ns", Better: report.Lower, Groups: groups}}
	d.Sections = append([]report.Section{{Title: "All stages", Charts: []report.Chart{chart}}}, d.Sections...)
	return d
}

func (p *PathStages) name() string { return p.Path + ", " + units.Thousands(p.Flows) + " flows" }

func (p *PathStages) verdict() string {
	own := p.own().Median()
	return fmt.Sprintf("%s: %s ns of a frame are weir's and its transmit's by samples; over the generator's path it takes %s ns more, the second device's ring among them.",
		p.name(), report.Figure(own), report.Figure(p.Net))
}

func (p *PathStages) table() report.Table {
	t := report.Table{Columns: []report.Column{{Name: "stage", Words: true}, {Name: "per frame", Unit: "ns"}, {Name: "smallest – largest run", Unit: "ns"}}}
	row := func(name string, runs stats.Sample) {
		t.Rows = append(t.Rows, []string{name, report.Figure(runs.Median()), report.Span(runs)})
	}
	for _, stage := range profile.Stages {
		row(stage, p.Stages[stage])
	}
	t.Marked = []int{len(t.Rows)}
	row("all of weir", p.own())
	for _, stage := range profile.Harness {
		row("benchmark: "+stage, p.Stages[stage])
	}
	row("a frame", p.Total)
	return t
}
