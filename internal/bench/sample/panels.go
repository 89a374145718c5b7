package sample

import (
	"maps"
	"slices"

	"weir/internal/bench/report"
)

// panels are the parts of a machine's chart besides its cores.
var panels = []struct {
	label, unit string
	value       func(p Point, add func(line string, v float64))
}{
	{"kernel's network work, busiest core", "%", func(p Point, add func(string, float64)) {
		most := 0.0
		for _, c := range p.Cores {
			most = max(most, c.Softirq)
		}
		add("softirq", 100*most)
	}},
	{"waiting in the links' queues", "kB", func(p Point, add func(string, float64)) {
		for _, l := range p.Links {
			add(l.Name, float64(l.Queued)/1e3)
		}
	}},
	{"dropped by links and queues", "packets", func(p Point, add func(string, float64)) {
		for _, l := range p.Links {
			add(l.Name, float64(l.RxDropped+l.TxDropped+l.QueueDrops+l.Errors))
		}
	}},
	{"kernel's backlog: dropped, and out of time", "times", func(p Point, add func(string, float64)) {
		var dropped, squeezed uint64
		for _, c := range p.Cores {
			dropped, squeezed = dropped+c.Dropped, squeezed+c.Squeezed
		}
		add("dropped", float64(dropped))
		add("out of time", float64(squeezed))
	}},
	{"dropped by weir, by reason", "packets", func(p Point, add func(string, float64)) {
		for reason, n := range p.Drops {
			add(reason, float64(n))
		}
	}},
	{"weir's states", "", func(p Point, add func(string, float64)) { add("states", float64(p.States)) }},
}

// Panels shows what a machine did: a panel for everything that happened, with the load of
// each core below.
func Panels(points []Point) *report.Times {
	t := &report.Times{Panels: []report.Panel{}, Cores: Loads(points)}
	for _, p := range panels {
		if lines := collect(points, p.value); len(lines) > 0 {
			t.Panels = append(t.Panels, report.Panel{Label: p.label, Unit: p.unit, Series: lines})
		}
	}
	return t
}

// collect makes a line for each name. If a point lacks the name, its value is 0. Lines
// that are always 0 are left out.
func collect(points []Point, each func(Point, func(string, float64))) []report.TimeLine {
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
	return slices.DeleteFunc(lines, func(l report.TimeLine) bool { return still(report.Panel{Series: []report.TimeLine{l}}) })
}
