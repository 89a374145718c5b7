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
	var columns []Column
	var lines [][]Moment
	for _, p := range t.Panels {
		for _, s := range p.Series {
			columns, lines = append(columns, Column{Name: p.nameOf(&s) + ", mean", Unit: p.Unit}), append(lines, s.Points)
		}
	}
	return t.byPart(columns, lines)
}

// loads returns a row for each part with the load of the cores.
func (t *Times) loads() Table { return t.byPart(nil, nil) }

// byPart returns a row for each part: the means of some lines, and the load of the cores.
func (t *Times) byPart(columns []Column, lines [][]Moment) Table {
	out := Table{Columns: slices.Concat([]Column{{Name: "what", Words: true}}, columns, t.loadColumns())}
	for i, p := range t.Parts {
		row := []string{p.Name}
		for _, points := range lines {
			cell := "–"
			if s := values(t.within(i, points), 1); len(s) > 0 {
				cell = figure(s.Mean()) + " (" + spread(s) + ")"
			}
			row = append(row, cell)
		}
		out.Add(p.Ours, append(row, t.loadCells(i)...)...)
	}
	return out
}

// manyCores is the number of cores above which a table has no column for each, but shows
// the busiest.
const manyCores = 8

func (t *Times) loadColumns() (columns []Column) {
	if len(t.Cores) > manyCores {
		return []Column{{Name: "busiest core"}, {Name: "it was", Unit: "% busy"}, {Name: "all cores", Unit: "% busy"}}
	}
	for _, c := range t.Cores {
		columns = append(columns, Column{Name: fmt.Sprintf("core %d", c.Core), Unit: "% busy"})
	}
	return columns
}

func (t *Times) loadCells(part int) (cells []string) {
	busy := make(stats.Sample, len(t.Cores))
	for i, c := range t.Cores {
		cell := "–"
		if s := values(t.within(part, c.Points), 100); len(s) > 0 {
			busy[i] = s.Mean()
			cell = fmt.Sprintf("%.0f", busy[i])
		}
		cells = append(cells, cell)
	}
	if len(busy) <= manyCores {
		return cells
	}
	most := slices.Index(busy, busy.Max())
	return []string{units.Thousands(t.Cores[most].Core), cells[most], fmt.Sprintf("%.0f", busy.Mean())}
}

// within returns the moments of a part.
func (t *Times) within(part int, points []Moment) []Moment {
	p := t.Parts[part]
	return slices.DeleteFunc(slices.Clone(points), func(m Moment) bool { return m.Seconds < p.From || m.Seconds > p.To })
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
