package report

import (
	"slices"
	"strings"

	"weir/internal/stats"
	"weir/internal/units"
)

// shortTick names the ticks of an axis up to a value, with commas if there is room.
func shortTick(to float64) func(float64) string {
	if to >= 10000 {
		return units.Short
	}
	return func(v float64) string {
		if v == 0 {
			return "0"
		}
		return trimZeros(units.Digits(v, 3))
	}
}

// shortPlace writes a place in full unless the short form is shorter.
func shortPlace(v float64) string {
	if v < 10000 {
		return exact(v)
	}
	return units.Short(v)
}

func trimZeros(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func (c *Curves) draw(v *canvas) {
	runs := c.runs()
	format := shortTick(runs.Max())
	b := &box{top: 30, right: v.width - c.labelRoom(v), y: valueScale(c.Y.Log, runs.Min(), runs.Max())}
	b.bottom = b.top + v.plotHeight()
	b.y.a, b.y.b = b.bottom, b.top
	b.left = leftOf(b.y, 5, format)
	b.x = c.across(b.left+6, b.right-6)
	v.text("label", 1, 14, c.Y.named())
	v.grid(b, 5, format)
	v.under(b, c.placesX(b, v.ticks()), shortPlace)
	v.text("label end", b.right, b.bottom+37, c.X.named())
	var labels []label
	for _, s := range c.Series {
		style := v.colours.of(s.Name, s.Ours)
		if len(s.Points) == 0 {
			continue
		}
		c.drawSeries(v, b, s, style)
		last := s.Points[len(s.Points)-1]
		labels = append(labels, label{b.y.at(last.Runs.Median()) + 4, style.class, s.Name})
	}
	spreadOut(labels, b.top+4, b.bottom)
	for _, l := range labels {
		v.text("at "+l.class, b.right+8, l.y, shorten(l.text, (v.width-b.right-8)/bold))
	}
	v.height = b.bottom + belowAxis
}

// labelRoom returns the width that the names of the lines need on the right.
func (c *Curves) labelRoom(v *canvas) (w float64) {
	for _, s := range c.Series {
		w = max(w, textWidth(s.Name)*bold)
	}
	return min(w+12, v.width*0.35)
}

func (c *Curves) drawSeries(v *canvas, b *box, s Series, style style) {
	class := style.class
	var middle, upper, lower []place
	for _, p := range s.Points {
		x := b.x.at(p.X)
		middle = append(middle, place{x, b.y.at(p.Runs.Median())})
		upper = append(upper, place{x, b.y.at(p.Runs.Max())})
		lower = append(lower, place{x, b.y.at(p.Runs.Min())})
	}
	slices.Reverse(lower)
	v.path("band "+class, append(upper, lower...), true)
	v.path("curve "+class, middle, false)
	if len(s.Points) > 30 {
		return
	}
	for i, p := range s.Points {
		if len(p.Runs) > 1 {
			v.line("error "+class, middle[i].x, b.y.at(p.Runs.Min()), middle[i].x, b.y.at(p.Runs.Max()))
		}
		v.marker("dot "+class, style.marker, middle[i])
	}
}

// across returns the scale of the X axis. On a logarithmic one, 0 is drawn a decade
// before the smallest of the others.
func (c *Curves) across(left, right float64) scale {
	xs := c.xs()
	s := scale{log: c.X.Log, from: xs[0], to: xs[len(xs)-1], a: left, b: right}
	switch {
	case !s.log || s.from > 0:
	case len(xs) == 1:
		s.from, s.to = 1, 1
	default:
		s.from = xs[1] / 10
	}
	return s
}

// placesX returns the values named below the axis: the measured ones if they are few.
func (c *Curves) placesX(b *box, wanted int) []float64 {
	if xs := c.xs(); len(xs) <= 12 {
		return xs
	}
	return b.x.ticks(wanted)
}

// xs returns the X of all points, in order.
func (c *Curves) xs() (all []float64) {
	for _, s := range c.Series {
		for _, p := range s.Points {
			all = append(all, p.X)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// runs returns those of all points.
func (c *Curves) runs() (all stats.Sample) {
	for _, s := range c.Series {
		for _, p := range s.Points {
			all = append(all, p.Runs...)
		}
	}
	return all
}
