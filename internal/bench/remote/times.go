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
		r := f.results[len(f.results)-1]
		s := report.Section{Title: "What happened meanwhile: " + f.String(),
			Text: []string{"The last run. Beginnings of rates and samples may be apart by a round-trip time."}}
		s.Charts = append(s.Charts, chart("Seen from "+m.own.Name, r, r.own))
		if len(r.theirs) > 0 {
			s.Charts = append(s.Charts, chart("Seen from "+m.otherName(), r, r.theirs))
		}
		s.Charts = slices.DeleteFunc(s.Charts, func(c report.Chart) bool { return len(c.Times.Panels) == 0 && len(c.Times.Cores) == 0 })
		sections = append(sections, s)
	}
	return sections
}

func chart(title string, r *result, points []sample.Point) report.Chart {
	t := sample.Panels(points)
	if lines := rateLines(r); len(lines) > 0 {
		t.Panels = slices.Insert(t.Panels, 0, report.Panel{Label: "throughput", Unit: "Mbit/s", Series: lines})
	}
	c := report.Chart{Title: title, Times: t}
	if longest := sample.Longest(points); longest > 3*sample.Interval {
		c.Note = fmt.Sprintf("The machine was too busy to be read for %s.", longest.Round(time.Millisecond))
	}
	return c
}

func rateLines(r *result) []report.TimeLine {
	var lines []report.TimeLine
	for _, up := range ways {
		d := r.way(up)
		if d == nil || len(d.Series) == 0 {
			continue
		}
		step := d.Seconds / float64(len(d.Series))
		line := report.TimeLine{Name: directionNames[up], Ours: up || r.way(true) == nil}
		for i, v := range d.Series {
			line.Points = append(line.Points, report.Moment{Seconds: r.granted.Omit.Seconds() + float64(i+1)*step, Value: v / 1e6})
		}
		lines = append(lines, line)
	}
	return lines
}

// dropped returns a table of losses by place, empty if none were seen.
func (m *measured) dropped() (s report.Section) {
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
		return s
	}
	return report.Section{Title: "Where packets were dropped", Text: []string{"In all runs of a case together."}, Tables: []report.Table{t}}
}
