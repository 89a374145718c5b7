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
	t, err := template.New("page").Funcs(template.FuncMap{
		"marked": slices.Contains[[]int], "head": Column.named, "class": Table.class, "style": func() template.CSS { return template.CSS(pageStyle + chartStyle) },
		"sketch": func() string { return sketch }, "made": d.made, "verdicts": d.sentences, "controlled": d.controlled, "parts": d.parts,
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	if err := t.Execute(w, d); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// sentences returns the verdicts, none if the document may draw no conclusions.
func (d *Document) sentences() (all []string) {
	if !d.Conclusive() {
		return nil
	}
	for _, v := range d.Verdicts {
		all = append(all, kept(v))
	}
	return all
}

// parts returns the sections with their charts drawn.
func (d *Document) parts() (parts []part) {
	number, colours := 0, newColours()
	for i, s := range d.Sections {
		p := part{Section: s, ID: fmt.Sprintf("part-%d", i+1)}
		half := s.halves() > 1
		for j := range s.Charts {
			number++
			p.Figures = append(p.Figures, s.Charts[j].figureHTML(number, half, colours))
		}
		parts = append(parts, p)
	}
	return parts
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
