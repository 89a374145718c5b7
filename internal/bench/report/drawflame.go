package report

import (
	"fmt"
	"hash/fnv"
	"html"
	"maps"
	"slices"
	"strings"

	"weir/internal/units"
)

const (
	// flameRow is the height of one function.
	flameRow = 19
	// slimmest is the width below which a function is left out. Narrow towers would
	// make the figure high, and nobody could read them.
	slimmest = 1.5
)

// call is a function called by another one, with its own samples and those of what it
// calls.
type call struct {
	name  string
	count int
	calls map[string]*call
}

func (c *call) add(frames []string, count int) {
	c.count += count
	if len(frames) == 0 {
		return
	}
	if c.calls == nil {
		c.calls = map[string]*call{}
	}
	next := c.calls[frames[0]]
	if next == nil {
		next = &call{name: frames[0]}
		c.calls[frames[0]] = next
	}
	next.add(frames[1:], count)
}

// depth counts the rows that are wide enough to be seen.
func (c *call) depth(least int) int {
	deepest := 0
	for _, next := range c.calls {
		if next.count >= least {
			deepest = max(deepest, next.depth(least))
		}
	}
	return deepest + 1
}

// flamePlot draws a [Flame]: a caller is below what it calls.
type flamePlot struct {
	*canvas
	total, least int // least: fewer samples are too narrow to be seen
	bottom       float64
	unit         string
}

func (f *Flame) draw(c *canvas) {
	root := &call{name: "all"}
	for _, s := range f.Stacks {
		root.add(s.Frames, s.Count)
	}
	p := &flamePlot{canvas: c, total: root.count, unit: f.Unit, least: max(int(float64(root.count)*slimmest/c.width), 1)}
	depth := root.depth(p.least)
	p.bottom = float64(depth) * flameRow
	p.call(root, 0, 0)
	c.text("muted", 1, p.bottom+18, fmt.Sprintf("%s %s; the width is the share of the time", units.Thousands(root.count), f.Unit))
	c.height = p.bottom + 26
}

func (p *flamePlot) call(c *call, left float64, level int) {
	width := float64(c.count) / float64(p.total) * p.width
	y := p.bottom - float64(level+1)*flameRow
	fmt.Fprintf(&p.b, `<g><title>%s: %s of %s %s (%.1f %%)</title>`, html.EscapeString(c.name), units.Thousands(c.count),
		units.Thousands(p.total), html.EscapeString(p.unit), 100*float64(c.count)/float64(p.total))
	p.rect("frame "+tint(c.name), left, y, width-0.6, flameRow-1)
	if text := shorten(c.name, width-8); text != "" {
		p.text("framename", left+4, y+13, text)
	}
	p.b.WriteString("</g>")
	for _, name := range slices.Sorted(maps.Keys(c.calls)) {
		next := c.calls[name]
		if next.count >= p.least {
			p.call(next, left, level+1)
		}
		left += float64(next.count) / float64(p.total) * p.width
	}
}

// tint separates weir's functions from the kernel's, and neighbours from each other.
func tint(name string) string {
	h := fnv.New32a()
	h.Write([]byte(name))
	shade := h.Sum32() % 3
	if strings.HasPrefix(name, "bpf: weir") || strings.HasPrefix(name, "bpf_prog_weir") {
		return fmt.Sprintf("f%d mine", shade)
	}
	return fmt.Sprintf("f%d", shade)
}
