package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"weir/internal/units"
)

// Heights of the parts of a time chart.
const (
	panelHeight = 118
	panelHead   = 30
	panelGap    = 22
	coreHeight  = 26
	coreGap     = 6
	laneHeight  = 18 // one lane of names above
)

// timePlot draws [Times].
type timePlot struct {
	*canvas
	times *Times
	box   box
	y     float64 // top of the next panel
}

func (t *Times) draw(c *canvas) {
	p := &timePlot{canvas: c, times: t, y: 2}
	p.box.left, p.box.right = 46, c.width-p.labelRoom()
	from, to := t.span()
	p.box.x = scale{from: from, to: to, a: p.box.left, b: p.box.right}
	names := p.names()
	for _, n := range names {
		p.y = max(p.y, 2+laneHeight*float64(n.lane+1))
	}
	top := p.y
	for i := range t.Panels {
		p.panel(&t.Panels[i])
	}
	p.cores()
	p.under(&p.box, p.box.x.ticks(6), func(v float64) string { return figureShort(v) + " s" })
	p.marks(names, top, p.box.bottom) // first, so that it is behind everything
	c.height = p.box.bottom + 26
}

func figureShort(v float64) string {
	if v == 0 {
		return "0"
	}
	return trimZeros(units.Digits(v, 3))
}

// labelRoom returns the width that the names of the lines need on the right.
func (p *timePlot) labelRoom() float64 {
	w := textWidth("100 % mean") * bold
	for _, panel := range p.times.Panels {
		if len(panel.Series) < 2 {
			continue
		}
		for _, s := range panel.Series {
			w = max(w, textWidth(s.Name)*bold)
		}
	}
	return min(w+12, p.width*0.3)
}

// span returns the first and the last moment.
func (t *Times) span() (from, to float64) {
	from, to = math.Inf(1), math.Inf(-1)
	see := func(points []Moment) {
		for _, m := range points {
			from, to = min(from, m.Seconds), max(to, m.Seconds)
		}
	}
	for _, p := range t.Panels {
		for _, s := range p.Series {
			see(s.Points)
		}
	}
	for _, c := range t.Cores {
		see(c.Points)
	}
	return from, to
}

func (p *timePlot) panel(panel *Panel) {
	b := &p.box
	b.top, b.bottom = p.y+panelHead, p.y+panelHead+panelHeight
	b.y = valueScale(false, 0, panel.most())
	b.y.a, b.y.b = b.bottom, b.top
	p.text("label", 1, p.y+14, Axis{Label: panel.Label, Unit: panel.Unit}.named())
	p.grid(b, 3, shortTick(b.y.to))
	var labels []label
	for _, s := range panel.Series {
		class := "ours"
		if len(panel.Series) > 1 {
			class = p.colours.of(s.Name, s.Ours).class
		}
		var places []place
		for i, points := range p.times.stretches(s.Points) {
			if len(points) == 0 {
				continue
			}
			places = p.places(points, b.y)
			p.path("curve thin "+p.classOf(i, class, len(panel.Series)), places, false)
		}
		if len(panel.Series) > 1 && len(places) > 0 {
			labels = append(labels, label{places[len(places)-1].y + 4, class, s.Name})
		}
	}
	spreadOut(labels, b.top+4, b.bottom)
	for _, l := range labels {
		p.text("at "+l.class, b.right+8, l.y, shorten(l.text, (p.width-b.right-8)/bold))
	}
	p.y = b.bottom + panelGap
}

// classOf returns the style of a line in a part. If it is the only line of its panel, it
// looks like the subject of the part.
func (p *timePlot) classOf(part int, class string, lines int) string {
	if len(p.times.Parts) == 0 || lines > 1 || p.times.Parts[part].Ours {
		return class
	}
	return "c5"
}

func (p *Panel) most() (v float64) {
	for _, s := range p.Series {
		for _, m := range s.Points {
			v = max(v, m.Value)
		}
	}
	return v
}

// places maps moments to points. Of all moments on one pixel it keeps the first, the
// extremes and the last, so that no peak is lost.
func (p *timePlot) places(points []Moment, y scale) []place {
	var found []place
	for i := 0; i < len(points); {
		column := math.Floor(p.box.x.at(points[i].Seconds))
		j := i
		least, most := i, i
		for ; j < len(points) && math.Floor(p.box.x.at(points[j].Seconds)) == column; j++ {
			if points[j].Value < points[least].Value {
				least = j
			}
			if points[j].Value > points[most].Value {
				most = j
			}
		}
		kept := []int{i, least, most, j - 1}
		slices.Sort(kept)
		for _, k := range slices.Compact(kept) {
			found = append(found, place{p.box.x.at(points[k].Seconds), y.at(points[k].Value)})
		}
		i = j
	}
	return found
}

// cores draws a strip for each core, filled by its load.
func (p *timePlot) cores() {
	if len(p.times.Cores) == 0 {
		return
	}
	b := &p.box
	p.text("label", 1, p.y+14, "load of each core (%)")
	p.y += 24
	for _, core := range p.times.Cores {
		b.top, b.bottom = p.y, p.y+coreHeight
		y := scale{from: 0, to: 1, a: b.bottom, b: b.top}
		p.rect("strip", b.left, b.top, b.right-b.left, coreHeight)
		for _, points := range p.times.stretches(core.Points) {
			if len(points) == 0 {
				continue
			}
			places := p.places(points, y)
			area := append([]place{{places[0].x, b.bottom}}, places...)
			p.path("load", append(area, place{places[len(places)-1].x, b.bottom}), true)
		}
		p.text("tick end", b.left-7, b.bottom-8, fmt.Sprintf("core %d", core.Core))
		busy := values(core.Points, 100)
		p.text("muted", b.right+8, b.bottom-8, fmt.Sprintf("%.0f %% mean", busy.Mean()))
		p.y = b.bottom + coreGap
	}
	p.line("axis", b.left, b.bottom, b.right, b.bottom)
}

// moment is a named point on the time axis. Names are in several lanes so that they do
// not overlap.
type moment struct {
	x    float64
	name string
	end  bool // the name ends there
	lane int
}

// names returns the names of parts and marks in the order of time.
func (p *timePlot) names() []moment {
	var all []moment
	for _, part := range p.times.Parts {
		x := p.box.x.at(part.From)
		all = append(all, moment{x: x, name: shorten(part.Name, p.width-4-x)})
	}
	for _, m := range p.times.Marks {
		x := p.box.x.at(m.At)
		all = append(all, moment{x: x, name: m.Name, end: x+textWidth(m.Name) > p.width-4})
	}
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Compare(a.x, b.x) })
	var taken []float64 // how far each lane is filled
	for i := range all {
		m := &all[i]
		from, to := m.x, m.x+4+textWidth(m.name)
		if m.end {
			from, to = m.x-4-textWidth(m.name), m.x
		}
		for m.lane < len(taken) && taken[m.lane] > from {
			m.lane++
		}
		if m.lane == len(taken) {
			taken = append(taken, 0)
		}
		taken[m.lane] = to + 6
	}
	return all
}

// marks draws the moments with a name over all panels.
func (p *timePlot) marks(names []moment, top, bottom float64) {
	all := p.b.String()
	p.b.Reset()
	defer p.b.WriteString(all)
	for _, m := range names {
		if m.x <= p.box.left { // the axis is already there, and so are the names of the panels
			continue
		}
		p.line("mark", m.x, top-laneHeight*float64(m.lane), m.x, bottom)
	}
	for _, m := range names {
		class, side := "muted", m.x+4
		if m.end {
			class, side = "muted end", m.x-4
		}
		p.text(class, side, top-laneHeight*float64(m.lane)-4, m.name)
	}
}
