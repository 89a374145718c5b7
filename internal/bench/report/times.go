package report

import (
	"fmt"
	"slices"

	"weir/internal/stats"
	"weir/internal/units"
)

func (t *Times) figures() Table {
	if len(t.Parts) > 0 {
		return t.figuresOfParts()
	}
	out := Table{Columns: []Column{{Name: "what", Words: true}, {Name: "unit", Words: true}, {Name: "mean"}, {Name: "smallest"}, {Name: "largest"}}}
	add := func(name, unit string, s stats.Sample) {
		out.Rows = append(out.Rows, []string{name, unit, figure(s.Mean()), figure(s.Min()), figure(s.Max())})
	}
	for _, p := range t.Panels {
		for _, s := range p.Series {
			add(p.nameOf(&s), p.Unit, values(s.Points, 1))
		}
	}
	for _, c := range t.Cores {
		add(fmt.Sprintf("core %d busy", c.Core), "%", values(c.Points, 100))
	}
	return out
}

// Line returns the line with that name in a panel. It makes panel and line if they do not
// exist.
func (t *Times) Line(label, unit, name string) *TimeLine {
	i := slices.IndexFunc(t.Panels, func(p Panel) bool { return p.Label == label })
	if i < 0 {
		i = len(t.Panels)
		t.Panels = append(t.Panels, Panel{Label: label, Unit: unit})
	}
	p := &t.Panels[i]
	j := slices.IndexFunc(p.Series, func(s TimeLine) bool { return s.Name == name })
	if j < 0 {
		j = len(p.Series)
		p.Series = append(p.Series, TimeLine{Name: name})
	}
	return &p.Series[j]
}

// nameOf returns the name of a line of the panel.
func (p *Panel) nameOf(s *TimeLine) string {
	if s.Name == "" || s.Name == p.Label {
		return p.Label
	}
	return p.Label + ": " + s.Name
}

// figuresOfParts returns a table with a row for each part: its rates and the load of the
// cores.
func (t *Times) figuresOfParts() Table {
	out := t.loads()
	at := 1
	for _, p := range t.Panels {
		for _, s := range p.Series {
			out.insert(at, Column{Name: p.nameOf(&s) + ", mean", Unit: p.Unit}, t.each(s.Points, func(s stats.Sample) string {
				return figure(s.Mean()) + " (" + spread(s) + ")"
			}))
			at++
		}
	}
	return out
}

// manyCores is the number of cores above which a table has no column for each.
const manyCores = 8

// loads returns a row for each part with the load of each core. With many cores it shows
// only the busiest.
func (t *Times) loads() Table {
	out := Table{Columns: []Column{{Name: "what", Words: true}}}
	for _, p := range t.Parts {
		out.Add(p.Ours, p.Name)
	}
	if len(t.Cores) > manyCores {
		return t.busiest(out)
	}
	for _, c := range t.Cores {
		cells := t.each(c.Points, func(s stats.Sample) string { return wholePercent(s.Mean()) })
		out.insert(len(out.Columns), Column{Name: fmt.Sprintf("core %d", c.Core), Unit: "% busy"}, cells)
	}
	return out
}

func (t *Times) busiest(out Table) Table {
	names, shares, means := make([]string, len(t.Parts)), make([]string, len(t.Parts)), make([]string, len(t.Parts))
	for i := range t.Parts {
		most, sum := -1.0, 0.0
		for _, c := range t.Cores {
			busy := 0.0
			if s := values(t.within(i, c.Points), 1); len(s) > 0 {
				busy = s.Mean()
			}
			if sum += busy; busy > most {
				most, names[i] = busy, units.Thousands(c.Core)
			}
		}
		shares[i], means[i] = wholePercent(most), wholePercent(sum/float64(len(t.Cores)))
	}
	out.insert(1, Column{Name: "busiest core"}, names)
	out.insert(2, Column{Name: "it was", Unit: "% busy"}, shares)
	out.insert(3, Column{Name: "all cores", Unit: "% busy"}, means)
	return out
}

func wholePercent(share float64) string { return fmt.Sprintf("%.0f", share*100) }

// insert adds a column with a cell for each row.
func (t *Table) insert(at int, c Column, cells []string) {
	t.Columns = append(t.Columns[:at], append([]Column{c}, t.Columns[at:]...)...)
	for i, row := range t.Rows {
		t.Rows[i] = append(row[:at], append([]string{cells[i]}, row[at:]...)...)
	}
}

// each returns a cell for each part.
func (t *Times) each(points []Moment, cell func(stats.Sample) string) []string {
	cells := make([]string, len(t.Parts))
	for i := range t.Parts {
		cells[i] = "–"
		if s := values(t.within(i, points), 1); len(s) > 0 {
			cells[i] = cell(s)
		}
	}
	return cells
}

// within returns the moments of a part.
func (t *Times) within(part int, points []Moment) (found []Moment) {
	p := t.Parts[part]
	for _, m := range points {
		if m.Seconds >= p.From && m.Seconds <= p.To {
			found = append(found, m)
		}
	}
	return found
}

// stretches returns the moments of each part, or all of them together if there are no
// parts.
func (t *Times) stretches(points []Moment) [][]Moment {
	if len(t.Parts) == 0 {
		return [][]Moment{points}
	}
	all := make([][]Moment, len(t.Parts))
	for i := range t.Parts {
		all[i] = t.within(i, points)
	}
	return all
}

func values(points []Moment, factor float64) stats.Sample {
	s := make(stats.Sample, len(points))
	for i, p := range points {
		s[i] = p.Value * factor
	}
	return s
}
