package parser

import (
	"bytes"
	"fmt"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/scanner"
	"weir/pf/source"
	"weir/pf/token"
)

// Limits of the input. Reading also ends when the list of errors is full.
const (
	maxNesting = 64      // nesting of lists
	maxItems   = 1 << 20 // items in one statement's lists
)

// Parse reads a configuration of one file. name is used in messages. The file has the
// statements that could be read. It is usable only if the list has no errors.
func Parse(name string, src []byte) (*ast.File, diag.List) {
	return ParseInput(&source.Input{Name: name, Text: src})
}

// ParseInput reads a configuration, with the files that it includes in place of their
// include statements.
func ParseInput(in *source.Input) (*ast.File, diag.List) {
	set := token.NewFileSet()
	list := &diag.List{Files: set}
	first := set.AddFile(in.Name, in.Text)
	p := &parser{
		faults: list,
		stream: scanner.NewStream(set, first, list),
		files:  files{open: in.Files, known: in.Known, first: in.Name, set: set, left: maxText},
	}
	p.fix(in.Macros)
	p.advance()
	file := &ast.File{Files: set}
	for p.tok.Kind != token.EOF && !list.Full() {
		if s := p.line(); s != nil {
			file.Stmts = append(file.Stmts, s)
		}
	}
	for _, c := range p.stream.Comments() {
		file.Comments = append(file.Comments, ast.Comment(c))
	}
	p.hint(first)
	for i := range in.Anchors {
		file.Stmts = append(file.Stmts, p.runTimeAnchor(&in.Anchors[i]))
	}
	file.Fingerprints = p.fingerprints(in.Anchors)
	p.markUsed(file.Stmts)
	file.Partial = list.HasErrors()
	return file, *list
}

// fix sets macros from outside.
func (p *parser) fix(macros []source.Macro) {
	for _, m := range macros {
		p.stream.Fix(m.Name, p.files.set.AddFile("-D", []byte(m.Name+"="+m.Value)), m.Value)
	}
}

type parser struct {
	stream *scanner.Stream
	faults *diag.List
	tok    token.Token   // the current token
	ahead  []token.Token // at most one token, after tok
	last   token.Span    // of the token before tok
	lists  int           // open braces of lists
	items  int           // items in the statement's lists
	protos []ast.Proto   // the statement's protocols
	blocks int           // open braces of blocks
	depth  int           // open anchors
	gaveUp bool          // the rest of the file is not read
	files  files

	asksSystem bool        // a rule asks for an operating system
	systemFile *ast.Option // set fingerprints
}

// bailout is the panic value if a statement cannot be read further. line recovers it.
type bailout struct{}

func (p *parser) advance() {
	p.last = p.tok.Span
	if len(p.ahead) > 0 {
		p.tok, p.ahead = p.ahead[0], p.ahead[:0]
		return
	}
	p.tok = p.stream.Next()
}

// peek returns the token after the current one.
func (p *parser) peek() token.Token {
	if len(p.ahead) == 0 {
		p.ahead = append(p.ahead, p.stream.Next())
	}
	return p.ahead[0]
}

// line reads a statement and the end of its line. It returns nil for an empty line, and
// if nothing could be read.
func (p *parser) line() (s ast.Stmt) {
	p.lists, p.items, p.protos = 0, 0, nil
	if p.tok.Kind == token.Newline {
		p.advance()
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(bailout); !ok {
				panic(r)
			}
			p.resume()
			s = nil
		}
	}()
	s = p.statement()
	p.end()
	return s
}

// end requires the end of the statement: of the line, the file or the block.
func (p *parser) end() {
	switch p.tok.Kind {
	case token.EOF, token.Newline:
	case token.RightBrace:
		if p.blocks == 0 {
			p.unexpected()
		}
	default:
		p.unexpected()
	}
}

// resume skips to where the next statement may start: the end of the line or, if a list
// is open, the end of the line on which the list ends. A word that starts statements also
// ends a list that was never closed.
func (p *parser) resume() {
	for {
		switch p.tok.Kind {
		case token.EOF:
			return
		case token.Newline:
			if next := p.peek(); p.lists == 0 || next.Kind == token.Word && startsStatement[next.Text] {
				return
			}
		case token.LeftBrace:
			p.lists++
		case token.RightBrace:
			if p.lists == 0 && p.blocks > 0 {
				return
			}
			p.lists = max(0, p.lists-1)
		}
		p.advance()
	}
}

// fail reports an error and gives up the statement. It does not repeat errors of the
// scanner.
func (p *parser) fail(sp token.Span, format string, args ...any) {
	p.failWith(diag.Diagnostic{Span: sp, Message: fmt.Sprintf(format, args...)})
}

func (p *parser) failWith(d diag.Diagnostic) {
	if p.tok.Kind != token.Bad {
		if at, ok := p.brokenLine(); ok {
			d.Related = append(d.Related, diag.Related{Span: at, Note: "a blank follows this \\, so the line ends here"})
		}
		p.faults.Add(d)
	}
	panic(bailout{})
}

// brokenLine returns the place of a backslash that probably was meant to continue the line
// which ends at the current token or before it, but does not, because blanks follow it.
func (p *parser) brokenLine() (token.Span, bool) {
	file := p.files.set.File(p.tok.Pos)
	if file == nil || p.lists > 0 {
		return token.Span{}, false
	}
	at := p.files.set.Position(p.tok.Pos)
	n := at.Line
	if p.tok.Kind != token.Newline && p.tok.Kind != token.EOF {
		if len(bytes.TrimLeft(file.Line(n)[:at.Column-1], " \t")) > 0 {
			return token.Span{}, false
		}
		n--
	}
	line := file.Line(n)
	text := bytes.TrimRight(line, " \t")
	if len(text) == len(line) || !bytes.HasSuffix(text, []byte{'\\'}) || bytes.IndexByte(text, '#') >= 0 {
		return token.Span{}, false
	}
	end := file.LineStart(n) + token.Pos(len(text))
	return token.Span{Pos: end - 1, End: end}, true
}

// describe names the current token in a message.
func (p *parser) describe() string {
	switch p.tok.Kind {
	case token.EOF, token.Newline:
		return p.tok.Kind.String()
	case token.String:
		return fmt.Sprintf("string %q", p.tok.Text)
	}
	return fmt.Sprintf("%q", p.tok.Text)
}

// expected fails because the current token is not what the grammar requires.
func (p *parser) expected(what string) {
	p.fail(p.tok.Span, "expected %s, found %s", what, p.describe())
}

func (p *parser) is(kind token.Kind) bool { return p.tok.Kind == kind }

// isWord reports whether the current token is the keyword w.
func (p *parser) isWord(w string) bool { return p.tok.Kind == token.Word && p.tok.Text == w }

// accept consumes a token of a kind, if it is here.
func (p *parser) accept(kind token.Kind) bool {
	if p.tok.Kind != kind {
		return false
	}
	p.advance()
	return true
}

// acceptWord consumes the keyword w, if it is here.
func (p *parser) acceptWord(w string) bool {
	if !p.isWord(w) {
		return false
	}
	p.advance()
	return true
}

// expect consumes a token of a kind, which is required after after.
func (p *parser) expect(kind token.Kind, after string) token.Token {
	if p.tok.Kind != kind {
		p.expected(fmt.Sprintf("%q after %s", kind.String(), after))
	}
	t := p.tok
	p.advance()
	return t
}

// expectWord consumes the keyword w, which is required after after.
func (p *parser) expectWord(w, after string) {
	if !p.isWord(w) {
		d := diag.Diagnostic{Span: p.tok.Span, Message: fmt.Sprintf("expected %q after %s, found %s", w, after, p.describe())}
		if p.is(token.Word) && !token.IsKeyword(p.tok.Text) {
			d.Suggest = diag.Nearest(p.tok.Text, []string{w})
		}
		p.failWith(d)
	}
	p.advance()
}

// name reads a name, which is a non-empty word.
func (p *parser) name(what string) ast.Word {
	if p.tok.IsText() && p.tok.Text == "" {
		p.expected(what)
	}
	return p.word(what)
}

// word reads a name or value, which messages call what. Keywords must be quoted.
func (p *parser) word(what string) ast.Word {
	if !p.tok.IsText() {
		p.expected(what)
	}
	if p.tok.Kind == token.Word && token.IsKeyword(p.tok.Text) {
		p.fail(p.tok.Span, "expected %s, found the keyword %q; quote it if it is meant as a name", what, p.tok.Text)
	}
	w := ast.Word{Span: p.tok.Span, Text: p.tok.Text}
	p.advance()
	return w
}

// list reads one item, or several in braces, separated by optional commas and line ends.
// Lists may contain lists.
func (p *parser) list(item func()) {
	if !p.is(token.LeftBrace) {
		item()
		return
	}
	p.braces(false, item)
}

// braces reads a list in braces.
func (p *parser) braces(mayBeEmpty bool, item func()) {
	open := p.tok.Span
	p.advance()
	if p.lists++; p.lists > maxNesting {
		p.fail(open, "lists are nested more than %d deep", maxNesting)
	}
	p.lineEnds()
	if p.is(token.RightBrace) && !mayBeEmpty {
		p.fail(open.To(p.tok.Span), "the list is empty")
	}
	for !p.is(token.RightBrace) {
		if p.is(token.EOF) || p.is(token.Newline) {
			p.fail(open, "the list is not closed")
		}
		if p.items++; p.items > maxItems {
			p.fail(p.tok.Span, "the lists of a statement have more than %d elements", maxItems)
		}
		p.list(item)
		p.lineEnds()
		p.comma(token.RightBrace)
	}
	p.advance()
	p.lists--
}

// comma consumes a comma between elements and the line ends after it. As in pf, no comma
// may follow the last element, because that would mean that an element is missing.
func (p *parser) comma(closing token.Kind) {
	at := p.tok.Span
	if !p.accept(token.Comma) {
		return
	}
	if closing == token.RightBrace {
		p.lineEnds()
	}
	if p.is(closing) {
		p.fail(at, "nothing follows this comma")
	}
}

// lineEnds consumes line ends in a list. It stops at a word that starts a statement,
// because the list was then not closed.
func (p *parser) lineEnds() {
	for p.is(token.Newline) {
		if next := p.peek(); next.Kind == token.Word && startsStatement[next.Text] && token.IsKeyword(next.Text) {
			return
		}
		p.advance()
	}
}

// markUsed notes which macros are used.
func (p *parser) markUsed(stmts []ast.Stmt) {
	for _, s := range stmts {
		switch s := s.(type) {
		case *ast.Macro:
			s.Used = s.Used || p.stream.Used(s.Name.Text)
		case *ast.LoadAnchor:
			p.markUsed(s.Body)
		case *ast.Rule:
			if s.Anchor != nil {
				p.markUsed(s.Anchor.Body)
			}
		}
	}
}
