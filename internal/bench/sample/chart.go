package sample

import (
	"maps"
	"slices"
	"time"

	"weir/internal/bench/report"
)

// Part is the record of one of the compared things.
type Part struct {
	Name   string
	Ours   bool
	Record *Record
}

// gap is the space between the parts of a chart, as a share of its width.
const gap = 0.012

// Chart shows one part after the other: rates, with the load of each core below. It
// returns false if nothing was recorded.
func Chart(title string, parts []Part) (report.Chart, bool) {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return p.Record == nil || len(p.Record.Moments) == 0 })
	if len(parts) == 0 {
		return report.Chart{}, false
	}
	total := time.Duration(0)
	for _, p := range parts {
		from, to := p.Record.span()
		total += to - from
	}
	t := &report.Times{}
	var loads []Point
	end := time.Duration(0)
	for i, p := range parts {
		if i > 0 {
			end += time.Duration(gap * float64(total))
		}
		from, to := p.Record.span()
		offset := end - from
		end = to + offset
		t.Parts = append(t.Parts, report.Part{Name: p.Name, Ours: p.Ours, From: (from + offset).Seconds(), To: end.Seconds()})
		p.Record.addTo(t, offset)
		for _, m := range p.Record.Moments {
			m.At += offset
			loads = append(loads, m.Point)
		}
	}
	t.Cores = Loads(loads)
	t.Panels = slices.DeleteFunc(t.Panels, still)
	return report.Chart{Title: title, Note: "One after the other. " + parts[0].Record.About, Times: t}, true
}

// still reports whether a panel shows nothing at all.
func still(p report.Panel) bool {
	return !slices.ContainsFunc(p.Series, func(l report.TimeLine) bool {
		return slices.ContainsFunc(l.Points, func(m report.Moment) bool { return m.Value > 0 })
	})
}

// span returns the start of the first moment and the end of the last.
func (r *Record) span() (from, to time.Duration) {
	first, last := r.Moments[0], r.Moments[len(r.Moments)-1]
	return first.At - first.Took, last.At
}

// addTo adds the record's rates to the panels of a chart.
func (r *Record) addTo(t *report.Times, offset time.Duration) {
	for i, rate := range r.Rates {
		line := t.Line(rate.Panel, rate.Unit, rate.Name)
		for _, m := range r.Moments {
			line.Points = append(line.Points, held(&m.Point, offset, m.Values[i])...)
		}
	}
}

// held returns the two ends of an interval, over which a value is the mean.
func held(p *Point, offset time.Duration, value float64) []report.Moment {
	to := p.At + offset
	return []report.Moment{{Seconds: (to - p.Took).Seconds(), Value: value}, {Seconds: to.Seconds(), Value: value}}
}

// Loads converts the cores' loads in points for a chart.
func Loads(points []Point) []report.Core {
	lines := map[int]*report.Core{}
	for _, p := range points {
		for _, c := range p.Cores {
			if lines[c.ID] == nil {
				lines[c.ID] = &report.Core{Core: c.ID}
			}
			line := lines[c.ID]
			ends := held(&p, 0, c.Busy)
			if n := len(line.Points); n > 0 { // another machine's points may have gaps
				ends[0].Seconds = max(ends[0].Seconds, line.Points[n-1].Seconds)
			}
			line.Points = append(line.Points, ends...)
		}
	}
	var all []report.Core
	for _, id := range slices.Sorted(maps.Keys(lines)) {
		all = append(all, *lines[id])
	}
	return all
}
