package report

import (
	"fmt"
	"io"
	"path"
	"strings"
)

// WriteMarkdown writes the document for text that is kept, such as a project's
// documentation. images is the folder of the charts that [Document.WriteSVGs] wrote,
// relative to the text. If it is empty, each chart becomes a table.
func (d *Document) WriteMarkdown(w io.Writer, images string) error {
	if err := d.Check(); err != nil {
		return err
	}
	out := &printer{w: w}
	out.line("# %s", escapeMarkdown(d.Title))
	out.line("")
	if d.Sketch {
		out.line("**%s**", sketch)
		out.line("")
	}
	for _, v := range d.conclusions() {
		out.line("- %s", escapeMarkdown(v))
	}
	out.line("")
	out.line("    %s", d.Command)
	names := d.chartNames()
	for _, s := range d.Sections {
		out.markdownSection(&s, names, images)
	}
	out.markdownEnd(d)
	return out.err
}

// sketch is the note on a run that was too short.
const sketch = "Sketch: a short run. Its figures show the way and prove little."

func (p *printer) markdownSection(s *Section, names map[*Chart]string, images string) {
	p.line("\n## %s", escapeMarkdown(s.Title))
	for _, text := range s.Text {
		p.line("\n%s", escapeMarkdown(text))
	}
	for i := range s.Charts {
		c := &s.Charts[i]
		p.line("\n### %s\n", escapeMarkdown(c.Title))
		if images != "" {
			p.line("![%s](%s)", escapeMarkdown(c.describe()), path.Join(images, names[c]))
		}
		if c.Note != "" {
			if images != "" {
				p.line("")
			}
			p.line("%s\n", escapeMarkdown(c.Note))
		}
		if images == "" {
			p.markdownTable(c.Figures())
		}
	}
	for _, t := range s.Tables {
		p.line("")
		if t.Title != "" {
			p.line("**%s**\n", escapeMarkdown(t.Title))
		}
		p.markdownTable(t)
	}
}

func (p *printer) markdownTable(t Table) {
	var head, rule []string
	for _, c := range t.Columns {
		head = append(head, escapeMarkdown(c.named()))
		if c.Words {
			rule = append(rule, "---")
		} else {
			rule = append(rule, "--:")
		}
	}
	p.line("| %s |\n|%s|", strings.Join(head, " | "), strings.Join(rule, "|"))
	marked := map[int]bool{}
	for _, i := range t.Marked {
		marked[i] = true
	}
	for i, row := range t.Rows {
		cells := make([]string, len(row))
		for j, cell := range row {
			cells[j] = escapeMarkdown(cell)
			if marked[i] && cell != "" {
				cells[j] = "**" + cells[j] + "**"
			}
		}
		p.line("| %s |", strings.Join(cells, " | "))
	}
}

func (p *printer) markdownEnd(d *Document) {
	p.line("\n## The machine\n\n%s\n", escapeMarkdown(d.made()))
	p.line("| | |\n|---|---|")
	for _, f := range d.Machine.Facts() {
		p.line("| %s | %s |", escapeMarkdown(f.Name), escapeMarkdown(f.Value))
	}
	if len(d.Method) > 0 {
		p.line("\n## How it was measured\n")
	}
	for _, m := range d.Method {
		p.line("- %s", escapeMarkdown(m))
	}
	if len(d.Skipped)+len(d.Notes) > 0 {
		p.line("\n## What to keep in mind\n")
	}
	for _, s := range d.Skipped {
		p.line("- Not measured: %s: %s", escapeMarkdown(s.What), escapeMarkdown(s.Reason))
	}
	for _, n := range d.Notes {
		p.line("- %s", escapeMarkdown(n))
	}
}

// conclusions returns the verdicts, or why there are none, and the control.
func (d *Document) conclusions() []string {
	if d.Control == nil {
		return d.Verdicts
	}
	if !d.Control.OK {
		return []string{"No verdict: " + d.Control.Why + "."}
	}
	return append(append([]string{}, d.Verdicts...), d.controlled())
}

// controlled describes the result of the control.
func (d *Document) controlled() string {
	return fmt.Sprintf("Control: %s, measured twice as if it were two, differs from itself by %.1f %%.", d.Control.Path, d.Control.Difference*100)
}

// made says when and with what the document was made.
func (d *Document) made() string {
	text := "Measured " + d.Started.UTC().Format("2006-01-02 15:04 UTC")
	if d.Version != "" {
		text += " by weir " + d.Version
	}
	return text + "."
}

// escapeMarkdown escapes text that Markdown would interpret.
func escapeMarkdown(text string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "<", "&lt;", "`", "\\`", "\n", " ").Replace(text)
}

// printer keeps the first error of many lines.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}
