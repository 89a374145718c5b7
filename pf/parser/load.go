package parser

import (
	"slices"
	"strings"

	"weir/pf/ast"
	"weir/pf/source"
	"weir/pf/token"
)

// loadAnchor reads load anchor, and the file that it names. As in pf, only macros set
// from outside are defined in that file.
func (p *parser) loadAnchor() ast.Stmt {
	l := &ast.LoadAnchor{Span: p.tok.Span}
	p.advance()
	p.expectWord("anchor", "load")
	l.Name = p.anchorPath()
	for name := range strings.SplitSeq(l.Name.Text, "/") {
		if name == "*" || name == ".." {
			p.fail(l.Name.Span, "rules are loaded into one anchor, so its path has no %s", name)
		}
	}
	if p.is(token.LeftBrace) { // the printed form
		a := &ast.Anchor{}
		p.block(a)
		l.Body = a.Body
	} else {
		p.expectWord("from", "the name of an anchor")
		l.File = p.fileName()
	}
	l.Span = l.Span.To(p.last)
	if l.File.Text != "" {
		p.loadFile(l)
	}
	return l
}

// loadFile reads the statements of a file into an anchor.
func (p *parser) loadFile(l *ast.LoadAnchor) {
	above := p.above(l.File.Pos)
	if len(above) > maxIncludes {
		p.fail(l.Span, "files include each other more than %d deep", maxIncludes)
	}
	if path := source.Path(above[0], l.File.Text); slices.Contains(above, path) {
		p.fail(l.File.Span, "%s includes itself", path)
	}
	file := p.open(l.File, l.Span)
	if file == nil {
		return
	}
	p.files = p.loadText(l, file, p.files, nil)
}

// loadText reads the statements of an open file into an anchor, with macros that are set for
// it alone. It returns what is left of the limits of files.
func (p *parser) loadText(l *ast.LoadAnchor, file *token.File, limits files, macros []source.Macro) files {
	inside := &parser{faults: p.faults, files: limits, depth: p.depth + 1, stream: p.stream.Separate(file)}
	inside.fix(macros)
	inside.advance()
	for inside.tok.Kind != token.EOF && !p.faults.Full() {
		if s := inside.line(); s != nil {
			l.Body = append(l.Body, s)
		}
	}
	inside.markUsed(l.Body)
	p.asksSystem = p.asksSystem || inside.asksSystem
	return inside.files
}

// runTimeAnchor reads the rules of an anchor that were loaded at run time.
func (p *parser) runTimeAnchor(a *source.Anchor) *ast.LoadAnchor {
	file := p.files.set.AddFile(a.Name, []byte(a.Text))
	at := token.Span{Pos: file.Pos(0), End: file.Pos(0)}
	l := &ast.LoadAnchor{Span: at, Name: ast.Word{Span: at, Text: a.Path}, AtRunTime: true, Flushed: a.Flushed, Elsewhere: a.Elsewhere}
	limits := p.files
	limits.open = a.Files
	p.loadText(l, file, limits, a.Macros)
	if len(a.Kept) > 0 {
		p.keepTables(l, a)
	}
	return l
}

// keepTables puts the definitions of tables that an anchor keeps before its rules.
func (p *parser) keepTables(l *ast.LoadAnchor, a *source.Anchor) {
	defined := make(map[string]bool)
	for _, s := range l.Body {
		if t, is := s.(*ast.Table); is {
			defined[t.Name.Text] = true
		}
	}
	kept := &ast.LoadAnchor{}
	p.loadText(kept, p.files.set.AddFile("kept tables of "+a.Path, []byte(strings.Join(a.Kept, "\n")+"\n")), p.files, nil)
	kept.Body = slices.DeleteFunc(kept.Body, func(s ast.Stmt) bool {
		t, is := s.(*ast.Table)
		return !is || defined[t.Name.Text]
	})
	l.Body = append(kept.Body, l.Body...)
}

// above returns the name of the file that contains pos, and of the files through which it
// was included.
func (p *parser) above(pos token.Pos) []string {
	var names []string
	for f := p.files.set.File(pos); f != nil; f = p.files.set.File(f.Included.Pos) {
		names = append(names, f.Name)
	}
	return names
}
