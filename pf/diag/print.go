package diag

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/pf/token"
)

// MaxErrors is how many errors, or warnings, are printed; the rest is only counted.
// Warnings about unenforced constructs have no limit, because each is something that the
// ruleset does not do.
const MaxErrors = 10

// maxWidth is how many characters of a source line are shown. Of a longer line, the part
// around the fault is shown.
const maxWidth = 120

// Fprint prints the errors or, if there are none, the warnings. A refused configuration
// shows only the reason for the refusal.
func (l *List) Fprint(w io.Writer) error {
	sorted := List{Files: l.Files, Items: slices.Clone(l.Items)}
	sorted.Sort()
	severity := Warning
	if l.HasErrors() {
		severity = Error
	}
	p := printer{w: w, files: l.Files}
	for i := range sorted.Items {
		if d := &sorted.Items[i]; d.Severity == severity && d.unenforced() {
			p.diagnostic(d)
		}
	}
	printed := 0
	for i := range sorted.Items {
		d := &sorted.Items[i]
		if d.Severity != severity || d.unenforced() {
			continue
		}
		if printed < MaxErrors {
			p.diagnostic(d)
		}
		printed++
	}
	if severity == Error {
		printed += l.dropped
	}
	switch more := printed - MaxErrors; {
	case more == 1:
		p.printf("1 more %s\n", severity)
	case more > 1:
		p.printf("%d more %ss\n", more, severity)
	}
	return p.err
}

// inMacro labels the text in a macro's definition that caused a fault.
const inMacro = "in this macro"

type printer struct {
	w     io.Writer
	files *token.FileSet
	err   error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) diagnostic(d *Diagnostic) {
	position := p.files.Position(d.Span.Pos)
	kind := ""
	if d.Severity == Warning {
		kind = "warning: "
	}
	p.printf("%s: %s%s\n", position, kind, d.Text())
	fault := p.files.Use(d.Span)
	related := d.Related
	if p.files.InMacro(d.Span.Pos) {
		related = append([]Related{{Span: p.files.Spelling(d.Span), Note: inMacro}}, related...)
	}
	beside := p.beside(fault, related)
	p.excerpt(fault, '^', "", beside)
	for i := range related {
		if beside == nil || beside != &related[i] {
			p.excerpt(p.files.Use(related[i].Span), '~', related[i].Note, nil)
		}
	}
	p.included(p.files.File(fault.Pos))
}

// beside returns the first related place without a note that can be marked on the line of
// the fault.
func (p *printer) beside(fault token.Span, related []Related) *Related {
	line := p.files.Position(fault.Pos).Line
	file := p.files.File(fault.Pos)
	for i := range related {
		sp := p.files.Use(related[i].Span)
		apart := sp.End <= fault.Pos || fault.End <= sp.Pos
		if related[i].Note == "" && apart && p.files.File(sp.Pos) == file && p.files.Position(sp.Pos).Line == line {
			return &related[i]
		}
	}
	return nil
}

// excerpt prints the line that sp starts on, and a mark under sp.
func (p *printer) excerpt(sp token.Span, mark byte, note string, beside *Related) {
	file := p.files.File(sp.Pos)
	if file == nil {
		return
	}
	number := file.Position(sp.Pos).Line
	line := file.Line(number)
	start := file.Position(sp.Pos).Column - 1
	marks := make([]byte, len(line)+1)
	paint(marks, start, start+int(sp.End-sp.Pos), mark)
	if beside != nil {
		other := p.files.Use(beside.Span)
		at := file.Position(other.Pos).Column - 1
		paint(marks, at, at+int(other.End-other.Pos), '~')
	}
	text, under := draw(line, marks, start)
	if note != "" {
		under += " " + note
	}
	p.printf("%5d | %s\n      | %s\n", number, text, under)
}

// paint marks the bytes from start to end, at least one, within the line.
func paint(marks []byte, start, end int, mark byte) {
	if start >= len(marks) {
		return
	}
	marks[start] = mark
	for i := start + 1; i < end && i < len(marks)-1; i++ {
		marks[i] = mark
	}
}

// draw returns a source line as it is shown, and the line of marks below it. Tabs are
// copied, so both have the same width. Control characters are replaced. Of a long line,
// the part around focus is shown.
func draw(line, marks []byte, focus int) (text, under string) {
	from, to := 0, len(line)
	if len(line) > maxWidth {
		from = max(0, min(focus-maxWidth/2, len(line)-maxWidth))
		to = from + maxWidth
	}
	var t, u strings.Builder
	for i := from; i < to; {
		r, size := utf8.DecodeRune(line[i:])
		t.WriteRune(visible(r))
		u.WriteByte(under1(r, marks[i]))
		i += size
	}
	if to == len(line) && marks[len(line)] != 0 {
		u.WriteByte(marks[len(line)])
	}
	return strings.TrimRight(t.String(), " \t"), strings.TrimRight(u.String(), " \t")
}

func under1(r rune, mark byte) byte {
	switch {
	case mark != 0:
		return mark
	case r == '\t':
		return '\t'
	}
	return ' '
}

func visible(r rune) rune {
	if r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0) {
		return utf8.RuneError
	}
	return r
}

// included prints the include statements that led to a file, each with its line.
func (p *printer) included(file *token.File) {
	for file != nil && file.Included.IsValid() {
		by := p.files.Use(file.Included)
		p.printf("      included by %s\n", p.files.Position(by.Pos))
		p.excerpt(by, '~', "", nil)
		file = p.files.File(by.Pos)
	}
}
