package report

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// Widths of charts in CSS pixels. Each chart is laid out for the width at which it is
// read, so letters are never scaled down.
const (
	wide   = 880
	narrow = 400
)

// Font sizes and the room that they need.
const (
	letter     = 12.5
	lineHeight = 17
	bold       = 1.1 // how much wider bold letters are
)

// canvas collects the shapes of one chart. style.css sets their looks by class.
type canvas struct {
	b             strings.Builder
	width, height float64
	colours       *colours
}

func (c *canvas) narrow() bool { return c.width < 600 }

// byWidth returns one of two sizes, by the width of the canvas.
func (c *canvas) byWidth(wide, narrow float64) float64 {
	if c.narrow() {
		return narrow
	}
	return wide
}

// ticks is the number of ticks that a scale across the canvas should have.
func (c *canvas) ticks() int { return int(c.byWidth(8, 5)) }

// plotHeight is the height of a plot without its names.
func (c *canvas) plotHeight() float64 { return c.byWidth(300, 210) }

func (c *canvas) rect(class string, x, y, w, h float64) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`, class, px(x), px(y), px(max(w, 0)), px(max(h, 0)))
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<path class="%s" d="M%s %sL%s %s"/>`, class, px(x1), px(y1), px(x2), px(y2))
}

func (c *canvas) text(class string, x, y float64, text string) {
	fmt.Fprintf(&c.b, `<text class="%s" x="%s" y="%s">%s</text>`, class, px(x), px(y), html.EscapeString(text))
}

// place is a point on the canvas.
type place struct{ x, y float64 }

func (c *canvas) path(class string, places []place, closed bool) {
	if len(places) == 0 {
		return
	}
	fmt.Fprintf(&c.b, `<path class="%s" d="`, class)
	for i, p := range places {
		if i == 0 {
			c.b.WriteString("M")
		} else {
			c.b.WriteString("L")
		}
		c.b.WriteString(px(p.x) + " " + px(p.y))
	}
	if closed {
		c.b.WriteString("Z")
	}
	c.b.WriteString(`"/>`)
}

// marker draws one of several shapes, so that lines differ even without colour.
func (c *canvas) marker(class string, shape int, p place) {
	const r = 3.6
	switch shape % 5 {
	case 0:
		fmt.Fprintf(&c.b, `<circle class="%s" cx="%s" cy="%s" r="%s"/>`, class, px(p.x), px(p.y), px(r))
	case 1:
		c.rect(class, p.x-r*0.9, p.y-r*0.9, r*1.8, r*1.8)
	case 2:
		c.path(class, []place{{p.x, p.y - r*1.2}, {p.x + r*1.15, p.y + r*0.9}, {p.x - r*1.15, p.y + r*0.9}}, true)
	case 3:
		c.path(class, []place{{p.x, p.y - r*1.3}, {p.x + r*1.3, p.y}, {p.x, p.y + r*1.3}, {p.x - r*1.3, p.y}}, true)
	case 4:
		c.path(class, []place{{p.x, p.y + r*1.2}, {p.x + r*1.15, p.y - r*0.9}, {p.x - r*1.15, p.y - r*0.9}}, true)
	}
}

// px writes a coordinate with one decimal.
func px(v float64) string {
	text := strconv.FormatFloat(v, 'f', 1, 64)
	return strings.TrimSuffix(text, ".0")
}

// textWidth estimates the width of a text. It errs on the wide side because the reader's
// fonts are unknown.
func textWidth(text string) float64 {
	w := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune("iljtfrI.,:;|'()[]! ", r):
			w += 0.38
		case strings.ContainsRune("mwMW%", r):
			w += 0.92
		case r >= 'A' && r <= 'Z':
			w += 0.7
		default:
			w += 0.61
		}
	}
	return w * letter
}

// shorten shortens a text to a width.
func shorten(text string, width float64) string {
	if textWidth(text) <= width {
		return text
	}
	r := []rune(text)
	for len(r) > 0 && textWidth(string(r)+"…") > width {
		r = r[:len(r)-1]
	}
	if len(r) < 2 {
		return ""
	}
	return string(r) + "…"
}
