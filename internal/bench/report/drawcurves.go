package report

import (
	"math"
	"slices"
	"strings"

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

// heightOf returns the height of a plot without its names.
func heightOf(c *canvas) float64 {
	if c.narrow() {
		return 210
	}
	return 300
}

func (c *Curves) draw(v *canvas) {
	format := shortTick(c.most())
	b := &box{top: 30, right: v.width - c.labelRoom(v), y: valueScale(c.Y.Log, c.least(), c.most())}
	b.bottom = b.top + heightOf(v)
	b.y.a, b.y.b = b.bottom, b.top
	b.left = leftOf(b.y, 5, format)
	b.x = c.across(b.left+6, b.right-6)
	v.text("label", 1, 14, c.Y.named())
	v.grid(b, 5, format)
	v.under(b, c.placesX(b, v), shortPlace)
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
		v.text("at "+l.class, b.right+8, l.y, fit(l.text, (v.width-b.right-8)/bold))
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
	s := scale{log: c.X.Log, from: math.Inf(1), to: math.Inf(-1), a: left, b: right}
	zero := false
	for _, series := range c.Series {
		for _, p := range series.Points {
			if s.log && p.X == 0 {
				zero = true
				continue
			}
			s.from, s.to = min(s.from, p.X), max(s.to, p.X)
		}
	}
	switch {
	case zero && s.to < s.from: // 0 is the only value
		s.from, s.to = 1, 1
	case zero:
		s.from /= 10
	}
	return s
}

// placesX returns the values named below the axis: the measured ones if they are few.
func (c *Curves) placesX(b *box, v *canvas) []float64 {
	var found []float64
	for _, series := range c.Series {
		for _, p := range series.Points {
			if !slices.Contains(found, p.X) {
				found = append(found, p.X)
			}
		}
	}
	if len(found) <= 12 {
		slices.Sort(found)
		return found
	}
	wanted := 8
	if v.narrow() {
		wanted = 5
	}
	return b.x.ticks(wanted)
}

func (c *Curves) least() float64 {
	v := math.Inf(1)
	for _, s := range c.Series {
		for _, p := range s.Points {
			v = min(v, p.Runs.Min())
		}
	}
	return v
}

func (c *Curves) most() (v float64) {
	for _, s := range c.Series {
		for _, p := range s.Points {
			v = max(v, p.Runs.Max())
		}
	}
	return v
}
