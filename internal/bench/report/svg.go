package report

import (
	_ "embed"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// chartStyle is the CSS of charts, for light and dark.
//
//go:embed chart.css
var chartStyle string

// describe describes the chart in a sentence, for readers who cannot see it.
func (c *Chart) describe() string { return c.Title + ": " + c.kind().about() }

func (b *Bars) about() string   { return "bars of " + b.Label }
func (c *Curves) about() string { return "curves of " + c.Y.Label + " against " + c.X.Label }
func (t *Times) about() string  { return "values over time" }
func (c *CDF) about() string    { return "cumulative distribution of " + c.X.Label }
func (f *Flame) about() string  { return "flame graph" }

// inline draws the chart for a page that already has the style. The page chooses the id.
func (c *Chart) inline(id string, width float64, colours *colours) string {
	v := &canvas{width: width, colours: colours}
	c.kind().draw(v)
	return fmt.Sprintf(`<svg class="chart" role="img" aria-labelledby="%s-t" viewBox="0 0 %s %s" width="%s" height="%s"><title id="%s-t">%s</title>%s</svg>`,
		id, px(v.width), px(v.height), px(v.width), px(v.height), id, html.EscapeString(c.describe()), v.b.String())
}

// svg draws the chart as a file of its own, with its title, its note and its source.
func (c *Chart) svg(source string, colours *colours) string {
	const margin, head = 24, 44
	v := &canvas{width: wide, colours: colours}
	c.kind().draw(v)
	y := v.height + head
	var foot canvas
	for _, text := range []string{c.Note, source} {
		for _, line := range wrap(text, wide) {
			y += lineHeight
			foot.text("muted", 0, y, line)
		}
	}
	height := y + margin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" class="chart alone" role="img" aria-labelledby="t" viewBox="%d %d %d %s" width="%d" height="%s">`+
		`<title id="t">%s</title><style>%s</style><rect class="ground" x="%d" y="%d" width="%d" height="%s"/>`+
		`<text class="title" x="0" y="18">%s</text><g transform="translate(0 %d)">%s</g>%s</svg>`+"\n",
		-margin, -margin/2, wide+2*margin, px(height), wide+2*margin, px(height),
		html.EscapeString(c.describe()), chartStyle, -margin, -margin/2, wide+2*margin, px(height),
		html.EscapeString(c.Title), head, v.b.String(), foot.b.String())
}

// wrap breaks a text at words to fit a width.
func wrap(text string, width float64) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && textWidth(line+" "+word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// WriteSVGs writes each chart to its own file below dir, which it makes if needed. It
// returns the files' names.
func (d *Document) WriteSVGs(dir string) (files []string, err error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("write the charts: %w", err)
	}
	names, colours := d.chartNames(), newColours()
	for i := range d.Sections {
		for j := range d.Sections[i].Charts {
			c := &d.Sections[i].Charts[j]
			name := filepath.Join(dir, names[c])
			if err := os.WriteFile(name, []byte(c.svg(d.source(), colours)), 0o666); err != nil {
				return files, fmt.Errorf("write the charts: %w", err)
			}
			files = append(files, name)
		}
	}
	return files, nil
}

// source is the line below a chart that stands alone.
func (d *Document) source() string {
	text := d.Command + " · " + d.Machine.CPU + ", Linux " + d.Machine.Kernel + ", " + d.Started.UTC().Format("2006-01-02")
	if d.Version != "" {
		text += ", weir " + d.Version
	}
	if d.Sketch {
		text += " · sketch"
	}
	if !d.Conclusive() {
		text += " · the control failed: no verdict"
	}
	return text
}

// chartNames returns the file names, made from kind and titles.
func (d *Document) chartNames() map[*Chart]string {
	names, taken := map[*Chart]string{}, map[string]int{}
	for i := range d.Sections {
		for j := range d.Sections[i].Charts {
			c := &d.Sections[i].Charts[j]
			name := slug(d.Kind + " " + c.Title)
			taken[name]++
			if n := taken[name]; n > 1 {
				name = fmt.Sprintf("%s-%d", name, n)
			}
			names[c] = name + ".svg"
		}
	}
	return names
}

// notInNames matches what file names leave out.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// slug turns a text into a file name: letters, digits, hyphens.
func slug(text string) string {
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(text), "-"), "-")
}
