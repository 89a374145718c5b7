package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// scale maps values to places on a canvas.
type scale struct {
	log      bool
	from, to float64 // values
	a, b     float64 // their places
}

func (s scale) at(v float64) float64 {
	from, to := s.from, s.to
	if s.log {
		from, to, v = math.Log10(from), math.Log10(to), math.Log10(max(v, from))
	}
	if to == from {
		return (s.a + s.b) / 2
	}
	return s.a + (v-from)/(to-from)*(s.b-s.a)
}

// ticks returns round values on the scale, about as many as wanted.
func (s scale) ticks(wanted int) []float64 {
	if s.log {
		return s.logTicks(wanted)
	}
	if s.to <= s.from {
		return []float64{s.from}
	}
	step := roundStep((s.to - s.from) / float64(max(wanted, 1)))
	var found []float64
	for i := math.Ceil(s.from/step - 1e-9); i*step <= s.to*(1+1e-9); i++ {
		found = append(found, i*step+0) // + 0 because rounding up to 0 returns -0
	}
	return found
}

// roundStep rounds up to 1, 2 or 5 times a power of ten.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, factor := range []float64{1, 2, 5} {
		if v <= factor*power*(1+1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

func (s scale) logTicks(wanted int) (found []float64) {
	factors := []float64{1}
	if math.Log10(s.to/s.from) < float64(wanted)/2 {
		factors = []float64{1, 2, 5}
	}
	for p := math.Floor(math.Log10(s.from)); p <= math.Ceil(math.Log10(s.to)); p++ {
		for _, f := range factors {
			if v := f * math.Pow(10, p); v >= s.from*(1-1e-9) && v <= s.to*(1+1e-9) {
				found = append(found, v)
			}
		}
	}
	every := (len(found) + wanted) / (wanted + 1) // with many decades, use every second power and so on
	kept := found[:0]
	for i := 0; i < len(found); i += max(every, 1) {
		kept = append(kept, found[i])
	}
	return kept
}

// valueScale begins at 0, or a little below the smallest value if it is logarithmic.
func valueScale(log bool, least, most float64) scale {
	if log {
		return scale{log: true, from: least * 0.8, to: most * 1.25}
	}
	if most <= 0 {
		most = 1
	}
	return scale{from: 0, to: most * 1.05}
}

// label is a text with a wanted height beside a plot.
type label struct {
	y     float64
	class string
	text  string
}

// spreadOut moves labels apart, in their order, and keeps them between top and
// bottom.
func spreadOut(labels []label, top, bottom float64) {
	slices.SortStableFunc(labels, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	next := top
	for i := range labels {
		labels[i].y = max(labels[i].y, next)
		next = labels[i].y + lineHeight
	}
	limit := bottom
	for i := len(labels) - 1; i >= 0; i-- {
		labels[i].y = min(labels[i].y, limit)
		limit = labels[i].y - lineHeight
	}
}

// colours assigns a class to each name, the same in all charts of a document. Our names
// have colours of their own; the others take the next free one.
type colours struct {
	ours, others int
	given        map[string]style
}

// style is how a series is drawn: its class, and a marker that tells it from others
// without colour.
type style struct {
	class  string
	marker int
}

func newColours() *colours { return &colours{given: map[string]style{}} }

func (c *colours) of(name string, ours bool) style {
	if s, ok := c.given[name]; ok {
		return s
	}
	s := style{"ours", 0}
	switch {
	case ours && c.ours > 0:
		s = style{"ours2", 3}
		c.ours++
	case ours:
		c.ours++
	default:
		s = style{fmt.Sprintf("c%d", c.others%6+1), c.others + 1}
		if c.others/6%2 == 1 { // the same colours again, with other dashes
			s.class += " again"
		}
		if c.others/12%2 == 1 { // and all of them again, as thick lines
			s.class += " thick"
		}
		c.others++
	}
	c.given[name] = s
	return s
}

// box is the area in which values are drawn.
type box struct {
	left, top, right, bottom float64
	x, y                     scale
}

// grid draws the lines of the value axis with their names.
func (c *canvas) grid(b *box, wanted int, format func(float64) string) {
	for _, v := range b.y.ticks(wanted) {
		y := b.y.at(v)
		c.line("grid", b.left, y, b.right, y)
		c.text("tick end", b.left-7, y+4, format(v))
	}
	c.line("axis", b.left, b.bottom, b.right, b.bottom)
}

// under names places on the X axis. Names that do not fit are left out.
func (c *canvas) under(b *box, at []float64, format func(float64) string) {
	free := math.Inf(-1)
	for _, v := range at {
		x, text := b.x.at(v), format(v)
		half := textWidth(text) / 2
		if x-half < free || x > b.right+1 || x < b.left-1 {
			continue
		}
		free = x + half + 8
		c.line("axis", x, b.bottom, x, b.bottom+4)
		switch { // text must not leave the chart
		case x+half > c.width:
			c.text("tick end", c.width, b.bottom+18, text)
		case x < half:
			c.text("tick", 0, b.bottom+18, text)
		default:
			c.text("tick middle", x, b.bottom+18, text)
		}
	}
}

// leftOf returns the width of the names of the ticks.
func leftOf(s scale, wanted int, format func(float64) string) float64 {
	w := 0.0
	for _, v := range s.ticks(wanted) {
		w = max(w, textWidth(format(v)))
	}
	return w + 10
}
