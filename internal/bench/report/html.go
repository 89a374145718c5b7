package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

// page is the data of the template.
type page struct {
	*Document
	Style       template.CSS
	Lead        string // the first verdict
	More        []string
	Refused     string // why there is no verdict
	Checked     string // the control's result
	SketchText  string
	Made        string
	Parts       []part
	Description string
}

// part is a section with its charts drawn.
type part struct {
	Section
	ID      string
	Figures []figureHTML
}

// figureHTML is a chart in a page, drawn once for a wide column and once for a narrow
// one. A half-width chart is always narrow.
type figureHTML struct {
	Title, Note string
	ID          string
	Half        bool
	Wide, Slim  template.HTML
	Table       Table
}

// WriteHTML writes the document as one self-contained page.
func (d *Document) WriteHTML(w io.Writer) error {
	if err := d.Check(); err != nil {
		return err
	}
	t, err := template.New("page").Funcs(template.FuncMap{"marked": slices.Contains[[]int], "head": Column.named, "class": Table.class}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	if err := t.Execute(w, d.page()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func (d *Document) page() *page {
	p := &page{Document: d, Style: template.CSS(pageStyle + chartStyle), Made: d.made(), Description: d.Title}
	if d.Sketch {
		p.SketchText = sketch
	}
	switch {
	case !d.Conclusive():
		p.Refused = d.Control.Why
	case len(d.Verdicts) > 0:
		p.Lead = kept(d.Verdicts[0])
		for _, v := range d.Verdicts[1:] {
			p.More = append(p.More, kept(v))
		}
		p.Description = p.Lead
	}
	if d.Control != nil && d.Control.OK {
		p.Checked = d.controlled()
	}
	number, colours := 0, newColours()
	for i, s := range d.Sections {
		part := part{Section: s, ID: fmt.Sprintf("part-%d", i+1)}
		half := s.halves() > 1
		for j := range s.Charts {
			number++
			part.Figures = append(part.Figures, s.Charts[j].figureHTML(number, half, colours))
		}
		p.Parts = append(p.Parts, part)
	}
	return p
}

// class returns the CSS class of a column. A column with sentences may not become narrow
// on a phone: the table scrolls instead.
func (t Table) class(column int) string {
	const sentence = 28
	if !t.Columns[column].Words {
		return "number"
	}
	for _, row := range t.Rows {
		if utf8.RuneCountInString(row[column]) > sentence {
			return "sentence"
		}
	}
	return ""
}

// kept keeps a figure and its unit on one line.
func kept(text string) string {
	return strings.NewReplacer(" %", "\u00a0%", "± ", "±\u00a0").Replace(text)
}

// halves counts the charts that fit side by side.
func (s *Section) halves() (n int) {
	for _, c := range s.Charts {
		if c.Curves != nil || c.CDF != nil {
			n++
		}
	}
	return n
}

func (c *Chart) figureHTML(number int, half bool, colours *colours) figureHTML {
	f := figureHTML{Title: c.Title, Note: c.Note, ID: fmt.Sprintf("figure-%d", number), Table: c.Figures(),
		Half: half && (c.Curves != nil || c.CDF != nil)}
	f.Slim = template.HTML(c.inline(f.ID+"s", narrow, colours))
	if !f.Half {
		f.Wide = template.HTML(c.inline(f.ID+"w", wide, colours))
	}
	return f
}
