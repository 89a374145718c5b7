package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"weir/internal/textout"
	"weir/internal/units"
)

// Text widths on a terminal.
const (
	leastWidth = 60
	mostWidth  = 110
)

// WriteText writes the document for a terminal with that many columns.
func (d *Document) WriteText(w io.Writer, width int) error {
	if err := d.Check(); err != nil {
		return err
	}
	out := &textWriter{textout.Lines{W: w}, min(max(width, leastWidth), mostWidth)}
	out.heading(d.Title, "═")
	if d.Sketch {
		out.paragraph("", sketch)
	}
	for _, v := range d.conclusions() {
		out.paragraph("• ", v)
	}
	for i := range d.Sections {
		out.section(&d.Sections[i])
	}
	out.heading("The machine", "─")
	for _, f := range d.Machine.Facts() {
		out.paragraph(fmt.Sprintf("%-14s ", f.Name), f.Value)
	}
	if len(d.Method) > 0 {
		out.heading("How it was measured", "─")
	}
	for _, m := range d.Method {
		out.paragraph("• ", m)
	}
	out.end(d)
	return out.Err
}

// textWriter writes for a terminal.
type textWriter struct {
	textout.Lines
	width int
}

func (t *textWriter) end(d *Document) {
	if len(d.Skipped)+len(d.Notes) > 0 {
		t.heading("What to keep in mind", "─")
	}
	for _, s := range d.Skipped {
		t.paragraph("• ", "Not measured: "+s.What+": "+s.Reason)
	}
	for _, n := range d.Notes {
		t.paragraph("• ", n)
	}
	t.Line("")
	t.paragraph("", d.made()+" To repeat it:")
	t.Line("  %s", d.Command)
}

func (t *textWriter) section(s *Section) {
	t.heading(s.Title, "─")
	for _, text := range s.Text {
		t.paragraph("", text)
	}
	for i := range s.Charts {
		c := &s.Charts[i]
		t.Line("")
		t.paragraph("", c.Title)
		t.chart(c)
		if c.Note != "" {
			t.paragraph("  ", c.Note)
		}
	}
	for _, table := range s.Tables {
		t.Line("")
		if table.Title != "" {
			t.paragraph("", table.Title)
		}
		t.table(table)
	}
}

func (t *textWriter) chart(c *Chart) {
	switch {
	case c.Bars != nil:
		t.bars(c.Bars)
	case c.Times != nil:
		t.times(c.Times)
	case c.Curves != nil:
		t.paragraph("  ", c.Curves.Y.named())
		t.table(c.Figures())
	default:
		t.table(c.Figures())
	}
}

// bars draws one line per bar: name, bar, median, spread.
func (t *textWriter) bars(b *Bars) {
	names, most := 0, 0.0
	for _, g := range b.Groups {
		for _, bar := range g.Bars {
			names, most = max(names, utf8.RuneCountInString(bar.Name)), max(most, bar.Runs.Median())
		}
	}
	const figures = 30
	room := max(t.width-names-figures, 10)
	t.paragraph("  ", b.Label)
	for _, g := range b.Groups {
		if g.Name != "" {
			t.paragraph("  ", g.Name)
		}
		for _, bar := range g.Bars {
			t.Line("  %-*s %-*s %12s %s", names, bar.Name, room, textBar(bar.Runs.Median(), most, room, bar.Ours),
				figure(bar.Runs.Median())+" "+b.Unit, besides(bar))
		}
	}
}

func besides(bar Bar) string {
	if len(bar.Runs) < 2 {
		return ""
	}
	return "(" + spread(bar.Runs) + ")"
}

// eighths of a column, from the left.
var eighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// textBar is exact to an eighth of a column. Bars that are not ours are lighter.
func textBar(v, most float64, room int, ours bool) string {
	if most <= 0 {
		return ""
	}
	n := int(v/most*float64(room)*8 + 0.5)
	if !ours {
		return strings.Repeat("░", (n+4)/8)
	}
	return strings.Repeat("█", n/8) + eighths[n%8]
}

// textName is the width of a line's name.
const textName = 20

// times draws one line of small bars per series.
func (t *textWriter) times(times *Times) {
	room := t.width - 46
	row := func(name, unit string, points []Moment, top, factor float64) {
		s := values(points, 1)
		t.Line("  %-*s %-*s %s %s (max %s)", textName, clip(name, textName), room, sparkline(s, top, room),
			figure(s.Mean()*factor), unit, figure(s.Max()*factor))
	}
	for _, p := range times.Panels {
		if len(times.Parts) > 0 {
			t.paragraph("  ", p.Label)
			times.rows(&p, row)
			continue
		}
		for _, s := range p.Series {
			name := s.Name
			if name == "" {
				name = p.Label
			}
			row(name, p.Unit, s.Points, values(s.Points, 1).Max(), 1)
		}
	}
	if len(times.Parts) > 0 && len(times.Cores) > 0 {
		t.paragraph("  ", "load of each core")
		t.table(times.loads())
		return
	}
	for _, c := range times.Cores {
		row("core "+units.Thousands(c.Core), "%", c.Points, 1, 100)
	}
}

// rows returns the lines of a panel, each part separately.
func (t *Times) rows(p *Panel, row func(name, unit string, points []Moment, top, factor float64)) {
	for i, part := range t.Parts {
		for _, s := range p.Series {
			points := t.within(i, s.Points)
			if len(points) == 0 {
				continue
			}
			name := part.Name
			if len(p.Series) > 1 {
				name = clip(name, max(textName-1-utf8.RuneCountInString(s.Name), 1)) + " " + s.Name
			}
			row(name, p.Unit, points, p.most(), 1)
		}
	}
}

var sparks = []rune("▁▂▃▄▅▆▇█")

// sparkline draws the largest value of each part, as many parts as fit.
func sparkline(values []float64, top float64, room int) string {
	n := min(room, len(values))
	var b strings.Builder
	for i := range n {
		part := values[i*len(values)/n : max((i+1)*len(values)/n, i*len(values)/n+1)]
		most := part[0]
		for _, v := range part {
			most = max(most, v)
		}
		level := 0
		if top > 0 {
			level = min(max(int(most/top*float64(len(sparks))), 0), len(sparks)-1)
		}
		b.WriteRune(sparks[level])
	}
	return b.String()
}

func (t *textWriter) table(table Table) {
	widths, heads := make([]int, len(table.Columns)), make([]string, len(table.Columns))
	for i, c := range table.Columns {
		heads[i] = c.named()
		widths[i] = utf8.RuneCountInString(c.named())
		for _, row := range table.Rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for _, cells := range append([][]string{heads}, table.Rows...) {
		t.row(table.Columns, widths, cells)
	}
}

// row writes the cells of a table. If a sentence in the last cell does not fit, it is
// wrapped or moved below.
func (t *textWriter) row(columns []Column, widths []int, cells []string) {
	const slim = 24
	line, last := " ", len(cells)-1
	for i, cell := range cells {
		switch {
		case i == last && columns[i].Words && widths[i] > slim && t.width-utf8.RuneCountInString(line) < slim:
			t.Line("%s", strings.TrimRight(line, " "))
			t.paragraph("      ", cell)
			return
		case i == last && columns[i].Words && widths[i] > slim:
			t.paragraph(line+" ", cell)
			return
		case columns[i].Words:
			line += fmt.Sprintf(" %-*s ", widths[i], cell)
		default:
			line += fmt.Sprintf(" %*s ", widths[i], cell)
		}
	}
	t.Line("%s", strings.TrimRight(line, " "))
}

func (t *textWriter) heading(text, under string) {
	t.Line("")
	t.paragraph("", text)
	t.Line("%s", strings.Repeat(under, min(utf8.RuneCountInString(text), t.width)))
}

// paragraph breaks text at words. Further lines are indented by the width of begin.
func (t *textWriter) paragraph(begin, text string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(begin))
	line, used := begin, 0
	for _, word := range strings.Fields(text) {
		if used > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > t.width {
			t.Line("%s", line)
			line, used = indent, 0
		}
		if used > 0 {
			line += " "
		}
		line += word
		used++
	}
	t.Line("%s", line)
}

// clip shortens text to a width.
func clip(text string, width int) string {
	if r := []rune(text); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return text
}
