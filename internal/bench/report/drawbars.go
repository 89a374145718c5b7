package report

import "weir/internal/stats"

// Heights of the parts of a bar chart.
const (
	barHeight   = 13
	barRow      = 27
	barRowTall  = 43 // with the name above the bar
	groupHeight = 30
	groupGap    = 14
	belowAxis   = 44
)

// barPlot draws [Bars].
type barPlot struct {
	*canvas
	bars *Bars
	x    scale
	y    float64 // top of the next row
	left float64
}

func (b *Bars) draw(c *canvas) {
	p := &barPlot{canvas: c, bars: b, y: 4, left: 1}
	names, values, most := b.room()
	right := c.width - 8
	if !c.narrow() {
		p.left = min(names, c.width*0.36) + 14
		right = c.width - values - 14
	}
	p.x = scale{from: 0, to: most, a: p.left, b: right}
	if most <= 0 {
		p.x.to = 1
	}
	rows := p.rows()
	bottom := p.y + rows
	for _, v := range p.x.ticks(p.wanted()) {
		p.canvas.line("grid", p.x.at(v), p.y, p.x.at(v), bottom)
	}
	for i, g := range b.Groups {
		if i > 0 {
			p.y += groupGap
		}
		p.group(&g)
	}
	p.axis(bottom)
	c.height = bottom + belowAxis
}

func (p *barPlot) wanted() int { return int(p.byWidth(7, 4)) }

func (p *barPlot) rowHeight() float64 { return p.byWidth(barRow, barRowTall) }

// rows returns the height of all groups.
func (p *barPlot) rows() (h float64) {
	for i, g := range p.bars.Groups {
		h += p.groupHeight(&g)
		if i > 0 {
			h += groupGap
		}
		h += float64(len(g.Bars)) * p.rowHeight()
	}
	return h + 4
}

// groupLines breaks the name of a group into lines.
func (p *barPlot) groupLines(g *BarGroup) []string { return wrap(g.Name, (p.width-4)/bold) }

func (p *barPlot) groupHeight(g *BarGroup) float64 {
	lines := len(p.groupLines(g))
	if lines == 0 {
		return 0
	}
	return groupHeight + float64(lines-1)*lineHeight
}

// room returns the widths of names and figures, and the largest value.
func (b *Bars) room() (names, values, most float64) {
	for _, g := range b.Groups {
		for _, bar := range g.Bars {
			names = max(names, bar.nameWidth())
			values = max(values, textWidth(bar.value(b.Unit))*bold+8+textWidth(bar.spread()))
			most = max(most, bar.Runs.Max())
		}
	}
	return names, values, most
}

// nameWidth returns the width of the name. Our names are bold.
func (b Bar) nameWidth() float64 {
	if b.Ours {
		return textWidth(b.Name) * bold
	}
	return textWidth(b.Name)
}

func (b Bar) value(unit string) string { return figure(b.Runs.Median()) + " " + unit }

func (b Bar) spread() string {
	if len(b.Runs) < 2 {
		return ""
	}
	return spread(b.Runs)
}

func (p *barPlot) group(g *BarGroup) {
	for i, line := range p.groupLines(g) {
		p.text("group", 1, p.y+18+float64(i)*lineHeight, line)
	}
	p.y += p.groupHeight(g)
	for _, bar := range g.Bars {
		p.row(bar)
		p.y += p.rowHeight()
	}
}

func (p *barPlot) row(bar Bar) {
	class, name := "other", "name"
	if bar.Ours {
		class, name = "ours", "name mine"
	}
	top := p.y + (barRow-barHeight)/2
	if p.narrow() {
		top = p.y + 22
		p.text(name, p.left, p.y+16, bar.Name)
		p.figures(bar, p.width-1, p.y+16, true)
	} else {
		room := p.left - 12
		if bar.Ours {
			room /= bold
		}
		p.text(name+" end", p.left-10, top+barHeight-2, shorten(bar.Name, room))
		p.figures(bar, p.x.at(bar.Runs.Max())+10, top+barHeight-2, false)
	}
	p.rect("bar "+class, p.left, top, p.x.at(bar.Runs.Median())-p.left, barHeight)
	p.runs(bar.Runs, top+barHeight/2)
}

// figures writes median and spread. They start at x, or end there if upTo is set.
func (p *barPlot) figures(bar Bar, x, y float64, upTo bool) {
	value, spread := bar.value(p.bars.Unit), bar.spread()
	if upTo {
		p.text("muted end", x, y, spread)
		if spread != "" {
			x -= textWidth(spread) + 8
		}
		p.text("value end", x, y, value)
		return
	}
	p.text("value", x, y, value)
	p.text("muted", x+textWidth(value)*bold+8, y, spread)
}

// runs draws the whisker from the smallest to the largest, and each run.
func (p *barPlot) runs(runs stats.Sample, y float64) {
	if len(runs) < 2 {
		return
	}
	from, to := p.x.at(runs.Min()), p.x.at(runs.Max())
	p.line("whisker", from, y, to, y)
	p.line("whisker", from, y-4, from, y+4)
	p.line("whisker", to, y-4, to, y+4)
	if to-from < 32 { // there dots would overlap
		return
	}
	for _, v := range runs {
		p.marker("run", 0, place{p.x.at(v), y})
	}
}

func (p *barPlot) axis(bottom float64) {
	b := &box{left: p.left, right: p.x.b, bottom: bottom, x: p.x}
	p.line("axis", p.left, bottom-p.rows(), p.left, bottom)
	p.under(b, p.x.ticks(p.wanted()), shortTick(p.x.to))
	text := p.bars.Label
	switch p.bars.Better {
	case Higher:
		text += " – more is better"
	case Lower:
		text += " – less is better"
	}
	p.text("label", p.left, bottom+37, shorten(text, p.width-p.left))
}
