package parser

import (
	"weir/pf/ast"
	"weir/pf/source"
	"weir/pf/token"
)

// Limits of the files of a configuration.
const (
	maxIncludes = 16       // nesting of files
	maxFiles    = 4096     // number of files, including those of tables
	maxText     = 64 << 20 // bytes of all files together
)

// files is the source of the files that statements name.
type files struct {
	open  source.Opener
	known func(table string) bool // without its files; may be nil
	first string                  // name of the first file
	set   *token.FileSet
	count int
	left  int // bytes left
}

// fileName reads the name of a file. As in pf, a word cannot have a / in it.
func (p *parser) fileName() ast.Word {
	const what = "the name of a file"
	if p.is(token.Slash) {
		p.fail(p.tok.Span, "expected %s, found %s; quote names with / in them", what, p.describe())
	}
	return p.name(what)
}

// include reads the statements of another file in place of this one.
func (p *parser) include() ast.Stmt {
	at := p.tok.Span
	p.advance()
	name := p.fileName()
	statement := at.To(p.last)
	if p.tok.Kind != token.Newline && p.tok.Kind != token.EOF {
		p.fail(p.tok.Span, "include must be on a line of its own")
	}
	if p.stream.Depth() >= maxIncludes {
		p.fail(statement, "files include each other more than %d deep", maxIncludes)
	}
	from := p.files.set.File(name.Pos)
	for f := from; f != nil; f = p.files.set.File(f.Included.Pos) {
		if f.Name == source.Path(from.Name, name.Text) {
			p.fail(name.Span, "%s includes itself", f.Name)
		}
	}
	if file := p.open(name, statement); file != nil {
		p.tok.Kind = token.Newline
		p.stream.Include(file)
	}
	return nil
}

// open reads a file that a statement names. It returns nil after it reported an error.
func (p *parser) open(name ast.Word, statement token.Span) *token.File {
	switch {
	case p.files.open == nil:
		p.faults.Errorf(name.Span, "no other file can be read here")
		return nil
	case p.files.count >= maxFiles:
		p.faults.Errorf(name.Span, "the configuration names more than %d files", maxFiles)
		return nil
	}
	path := source.Path(p.files.set.Position(name.Pos).File, name.Text)
	text, err := p.files.open.Open(path, p.files.left)
	if err != nil {
		p.faults.Errorf(name.Span, "%s cannot be read: %v", path, err)
		return nil
	}
	p.files.count++
	if p.files.left -= len(text); p.files.left < 0 {
		p.files.count = maxFiles
		p.faults.Errorf(name.Span, "the files of the configuration come to more than %d MiB", maxText>>20)
		return nil
	}
	file := p.files.set.AddFile(path, text)
	file.Included = statement
	return file
}

// Beside finds the files that a configuration names, and reads them. Their faults are
// reported when the configuration is read.
func Beside(name string, text []byte, macros []source.Macro, from source.Opener) source.Beside {
	r := source.Recorder{From: from}
	ParseInput(&source.Input{Name: name, Text: text, Macros: macros, Files: &r})
	return source.Beside{Files: r.Files, Macros: macros}
}
