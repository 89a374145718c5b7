package printer

import (
	"bytes"
	"fmt"
	"io"

	"weir/pf/ast"
)

// anchor prints the first words of an anchor.
func anchor(a *ast.Anchor) string {
	if a.Name.Text == "" {
		return "anchor"
	}
	return "anchor " + quote(a.Name.Text)
}

// block prints an anchor's braces and their contents, if there are any.
func block(w io.Writer, a *ast.Anchor) {
	if a == nil || !a.Braces.IsValid() {
		return
	}
	body(w, a.Body)
}

// body prints statements in braces.
func body(w io.Writer, stmts []ast.Stmt) {
	fmt.Fprintln(w, " {")
	inside := &indenter{w: w, fresh: true}
	for _, s := range stmts {
		statement(inside, s)
	}
	fmt.Fprint(w, "}")
}

// loadAnchor prints load anchor. If its rules are known, they follow in braces, for which
// pf has no form.
func loadAnchor(w io.Writer, l *ast.LoadAnchor) {
	fmt.Fprintf(w, "load anchor %s", quote(l.Name.Text))
	if l.File.Text != "" {
		fmt.Fprintf(w, " from %s\n", quote(l.File.Text))
		return
	}
	body(w, l.Body)
	fmt.Fprintln(w)
}

// An indenter writes each line with two blanks before it.
type indenter struct {
	w     io.Writer
	fresh bool // at the start of a line
}

// Write indents the lines of text.
func (i *indenter) Write(text []byte) (int, error) {
	for rest := text; len(rest) > 0; {
		if i.fresh && rest[0] != '\n' {
			if _, err := io.WriteString(i.w, "  "); err != nil {
				return 0, err
			}
		}
		end := bytes.IndexByte(rest, '\n') + 1
		i.fresh = end > 0
		if end == 0 {
			end = len(rest)
		}
		if _, err := i.w.Write(rest[:end]); err != nil {
			return 0, err
		}
		rest = rest[end:]
	}
	return len(text), nil
}
