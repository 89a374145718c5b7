package report

import "math"

func (d *CDF) draw(c *canvas) {
	least, most := d.span()
	b := &box{top: 30, right: c.width - 12, y: scale{from: 0, to: 1}}
	if len(d.Marks) > 0 {
		b.top += 16
	}
	b.bottom = b.top + c.plotHeight()
	b.y.a, b.y.b = b.bottom, b.top
	b.left = textWidth("100 %") + 10
	b.x = scale{log: d.X.Log, from: least, to: most, a: b.left, b: b.right}
	c.text("label", 1, 14, "share of all that is at most this (%)")
	for _, v := range []float64{0, 0.25, 0.5, 0.75, 0.9, 1} {
		c.line("grid", b.left, b.y.at(v), b.right, b.y.at(v))
		c.text("tick end", b.left-7, b.y.at(v)+4, figureShort(v*100)+" %")
	}
	c.line("axis", b.left, b.bottom, b.right, b.bottom)
	c.under(b, b.x.ticks(c.ticks()), shortPlace)
	c.text("label end", b.right, b.bottom+37, d.X.named())
	d.drawMarks(c, b)
	d.drawSeries(c, b)
}

func (d *CDF) drawSeries(c *canvas, b *box) {
	classes := make([]string, len(d.Series))
	for i, s := range d.Series {
		classes[i] = c.colours.of(s.Name, s.Ours).class
		places := []place{{b.x.at(max(s.first(), b.x.from)), b.bottom}}
		for _, p := range s.Points {
			x := b.x.at(p.Value)
			places = append(places, place{x, places[len(places)-1].y}, place{x, b.y.at(p.Share)})
		}
		c.path("curve "+classes[i], append(places, place{b.right, b.top}), false)
	}
	d.quantiles(c, b.bottom+52, classes)
}

func (d *Distribution) first() float64 {
	if len(d.Points) == 0 {
		return 0
	}
	return d.Points[0].Value
}

// quantiles draws a small table below the curves. The marker before each name tells which
// curve it belongs to.
func (d *CDF) quantiles(c *canvas, y float64, classes []string) {
	column := c.width * 0.15
	at := func(i int) float64 { return c.width - 12 - float64(len(shares)-1-i)*column }
	for i, q := range shares {
		c.text("tick end", at(i), y+10, q.name)
	}
	for i, s := range d.Series {
		y += lineHeight + 4
		c.line("curve "+classes[i], 2, y+6, 38, y+6)
		c.text("at "+classes[i], 46, y+10, shorten(s.Name, at(0)-column*0.6-46))
		for j, q := range shares {
			c.text("figure end", at(j), y+10, figure(s.quantile(q.share)))
		}
	}
	c.height = y + 22
}

// drawMarks draws limits with their names on top.
func (d *CDF) drawMarks(c *canvas, b *box) {
	for _, m := range d.Marks {
		if m.At < b.x.from || m.At > b.x.to {
			continue
		}
		x := b.x.at(m.At)
		c.line("mark", x, b.top, x, b.bottom)
		class := "muted middle"
		if x+textWidth(m.Name)/2 > c.width {
			class = "muted end"
		}
		c.text(class, x, b.top-6, m.Name)
	}
}

// span returns the smallest and the largest value, marks included.
func (d *CDF) span() (least, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, s := range d.Series {
		for _, p := range s.Points {
			least, most = min(least, p.Value), max(most, p.Value)
		}
	}
	for _, m := range d.Marks {
		most = max(most, m.At)
		if m.At > 0 {
			least = min(least, m.At)
		}
	}
	if !d.X.Log {
		least = min(least, 0)
	}
	if least == most {
		most = least + 1
	}
	return least, most
}
