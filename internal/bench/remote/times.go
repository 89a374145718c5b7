package remote

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"weir/internal/bench/report"
	"weir/internal/bench/sample"
	"weir/internal/units"
)

// times returns sections that show the last run of each case: what arrived, and what the
// machines did meanwhile.
func (m *measured) times() []report.Section {
	var sections []report.Section
	for _, f := range m.cases() {
		if len(f.results) == 0 {
			continue
		}
		r := f.results[len(f.results)-1]
		s := report.Section{Title: "What happened meanwhile: " + f.String(),
			Text: []string{"The last run. Beginnings of rates and samples may be apart by a round-trip time."}}
		s.Charts = append(s.Charts, chart("Seen from "+m.own.Name, r, r.own))
		if len(r.theirs) > 0 {
			s.Charts = append(s.Charts, chart("Seen from "+m.otherName(), r, r.theirs))
		}
		s.Charts = slices.DeleteFunc(s.Charts, func(c report.Chart) bool { return len(c.Times.Panels) == 0 && len(c.Times.Cores) == 0 })
		if len(s.Charts) > 0 {
			sections = append(sections, s)
		}
	}
	return sections
}

// panels are the parts of a machine's chart besides its cores.
var panels = []struct {
	label, unit string
	value       func(p sample.Point, add func(line string, v float64))
}{
	{"kernel's network work, busiest core", "%", func(p sample.Point, add func(string, float64)) {
		most := 0.0
		for _, c := range p.Cores {
			most = max(most, c.Softirq)
		}
		add("softirq", 100*most)
	}},
	{"waiting in the links' queues", "kB", func(p sample.Point, add func(string, float64)) {
		for _, l := range p.Links {
			add(l.Name, float64(l.Queued)/1e3)
		}
	}},
	{"dropped by links and queues", "packets", func(p sample.Point, add func(string, float64)) {
		for _, l := range p.Links {
			add(l.Name, float64(l.RxDropped+l.TxDropped+l.QueueDrops+l.Errors))
		}
	}},
	{"kernel's backlog: dropped, and out of time", "times", func(p sample.Point, add func(string, float64)) {
		var dropped, squeezed uint64
		for _, c := range p.Cores {
			dropped, squeezed = dropped+c.Dropped, squeezed+c.Squeezed
		}
		add("dropped", float64(dropped))
		add("out of time", float64(squeezed))
	}},
	{"dropped by weir, by reason", "packets", func(p sample.Point, add func(string, float64)) {
		for reason, n := range p.Drops {
			add(reason, float64(n))
		}
	}},
	{"weir's states", "", func(p sample.Point, add func(string, float64)) { add("states", float64(p.States)) }},
}

func chart(title string, r *result, points []sample.Point) report.Chart {
	t := &report.Times{Panels: []report.Panel{}, Cores: sample.Loads(points)}
	if lines := rateLines(r); len(lines) > 0 {
		t.Panels = append(t.Panels, report.Panel{Label: "throughput", Unit: "Mbit/s", Series: lines})
	}
	for _, p := range panels {
		if lines := collect(points, p.value); len(lines) > 0 {
			t.Panels = append(t.Panels, report.Panel{Label: p.label, Unit: p.unit, Series: lines})
		}
	}
	c := report.Chart{Title: title, Times: t}
	if longest := sample.Longest(points); longest > 3*sample.Interval {
		c.Note = fmt.Sprintf("The machine was too busy to be read for %s.", longest.Round(time.Millisecond))
	}
	return c
}

func rateLines(r *result) []report.TimeLine {
	var lines []report.TimeLine
	for _, up := range []bool{true, false} {
		d := r.way(up)
		if d == nil || len(d.Series) == 0 {
			continue
		}
		step := d.Window.Seconds() / float64(len(d.Series))
		line := report.TimeLine{Name: directionNames[up], Ours: true}
		for i, v := range d.Series {
			line.Points = append(line.Points, report.Moment{Seconds: r.granted.Omit.Seconds() + float64(i+1)*step, Value: v / 1e6})
		}
		lines = append(lines, line)
	}
	return lines
}

// collect makes a line for each name. If a point lacks the name, its value is 0. Lines
// that are always 0 are left out.
func collect(points []sample.Point, each func(sample.Point, func(string, float64))) []report.TimeLine {
	names := map[string]bool{}
	values := make([]map[string]float64, len(points))
	for i, p := range points {
		values[i] = map[string]float64{}
		each(p, func(name string, v float64) { names[name], values[i][name] = true, v })
	}
	var lines []report.TimeLine
	for _, name := range slices.Sorted(maps.Keys(names)) {
		line := report.TimeLine{Name: name}
		for i, p := range points {
			line.Points = append(line.Points, report.Moment{Seconds: p.At.Seconds(), Value: values[i][name]})
		}
		lines = append(lines, line)
	}
	return slices.DeleteFunc(lines, func(l report.TimeLine) bool {
		return !slices.ContainsFunc(l.Points, func(m report.Moment) bool { return m.Value != 0 })
	})
}

// dropped returns a table of losses by place, or nil if none were seen.
func (m *measured) dropped() *report.Section {
	t := report.Table{Columns: []report.Column{
		{Name: "case", Words: true}, {Name: "machine", Words: true}, {Name: "dropped by", Words: true}, {Name: "packets"},
	}}
	for _, f := range m.cases() {
		var own, theirs []sample.Point
		for _, r := range f.results {
			own, theirs = append(own, r.own...), append(theirs, r.theirs...)
		}
		for _, end := range []struct {
			name   string
			points []sample.Point
		}{{m.own.Name, own}, {m.otherName(), theirs}} {
			all := sample.Dropped(end.points)
			for _, place := range slices.Sorted(maps.Keys(all)) {
				t.Rows = append(t.Rows, []string{f.String(), end.name, place, units.Thousands(int(all[place]))})
			}
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return &report.Section{Title: "Where packets were dropped", Text: []string{"In all runs of a case together."}, Tables: []report.Table{t}}
}
