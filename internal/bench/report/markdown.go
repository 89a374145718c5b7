package report

import (
	_ "embed"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"text/template"
)

// WriteMarkdown writes the document for text that is kept, such as a project's
// documentation. images is the folder of the charts that [Document.WriteSVGs] wrote,
// relative to the text. If it is empty, each chart becomes a table.
func (d *Document) WriteMarkdown(w io.Writer, images string) error {
	if err := d.Check(); err != nil {
		return err
	}
	names := d.chartNames()
	image := func(c *Chart) string {
		if images == "" {
			return ""
		}
		return fmt.Sprintf("![%s](%s)", escapeMarkdown(c.describe()), path.Join(images, names[c]))
	}
	t, err := template.New("report").Funcs(template.FuncMap{"escape": escapeMarkdown, "head": Column.named, "marked": slices.Contains[[]int],
		"sketch": func() string { return sketch }, "conclusions": d.conclusions, "made": d.made, "image": image}).Parse(markdownText)
	if err == nil {
		err = t.Execute(w, d)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

//go:embed report.md.tmpl
var markdownText string

// sketch is the note on a run that was too short.
const sketch = "Sketch: a short run. Its figures show the way and prove little."

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
