package parser

import (
	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// unsupportedStatements start statements of OpenBSD's pf, or of FreeBSD's,
// that are not read yet.
var unsupportedStatements = []string{
	"load",
}

func (p *parser) statement() ast.Stmt {
	if p.is(token.RightBrace) && p.blocks > 0 {
		p.blocks--
		p.advance()
		return nil
	}
	if !p.tok.IsText() {
		p.expected("a statement")
	}
	if p.peek().Kind == token.Equal {
		return p.macro()
	}
	if p.is(token.Word) {
		if s, ok := p.freebsd(); ok {
			return s
		}
		switch word := p.tok.Text; {
		case word == "pass", word == "block", word == "match":
			return p.rule()
		case word == "anchor":
			return p.anchor()
		case word == "antispoof":
			return p.antispoof()
		case word == "table":
			return p.table()
		case word == "set":
			return p.set()
		case word == "include":
			return p.include()
		case word == "state", word == "source":
			return p.limiterDef()
		case word == "queue":
			return p.queue()
		case word == "altq":
			return p.altq()
		case startsStatement[word]:
			return p.unsupportedStatement()
		}
	}
	p.failWith(diag.Diagnostic{
		Span:    p.tok.Span,
		Message: "no statement starts with " + p.describe(),
		Suggest: diag.Nearest(p.tok.Text, statementWords),
	})
	return nil
}

// unsupportedStatement reports the statement and goes to the end of its line.
// The statements of a block that it opens are read as usual.
func (p *parser) unsupportedStatement() ast.Stmt {
	name, at := p.tok.Text, p.tok.Span
	if next := p.peek(); next.Kind == token.Word && (name == "no" || name == "load") {
		p.advance()
		name, at = name+" "+next.Text, at.To(next.Span)
	}
	p.faults.Errorf(at, "%s is not supported yet", name)
	for !p.is(token.Newline) && !p.is(token.EOF) {
		switch p.tok.Kind {
		case token.LeftBrace:
			p.blocks++
		case token.RightBrace:
			p.blocks = max(0, p.blocks-1)
		}
		p.advance()
	}
	return nil
}

// macro reads name = value, where the value is a row of words and strings.
func (p *parser) macro() ast.Stmt {
	name := p.tok
	if !isMacroName(name.Text) {
		p.fail(name.Span, "%q cannot name a macro: letters, digits and _ can", name.Text)
	}
	p.advance()
	p.advance()
	var values []token.Token
	for ; p.tok.IsText(); p.advance() { // no token behind the line is read before the macro is there
		if values = append(values, p.tok); len(values) > maxItems {
			p.fail(p.tok.Span, "the value of a macro has more than %d words", maxItems)
		}
	}
	switch {
	case p.tok.Kind != token.Newline && p.tok.Kind != token.EOF:
		p.fail(p.tok.Span, "%s must be quoted in the value of a macro", p.describe())
	case len(values) == 0:
		p.expected("a value after " + name.Text + " =")
	}
	return &ast.Macro{
		Span:  name.Span.To(p.last),
		Name:  ast.Word{Span: name.Span, Text: name.Text},
		Value: p.stream.Define(name.Text, values),
	}
}

func isMacroName(s string) bool {
	for _, c := range []byte(s) {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != ""
}

func (p *parser) antispoof() ast.Stmt {
	a := &ast.Antispoof{Span: p.tok.Span}
	p.advance()
	p.logQuick(&a.Log, &a.Quick)
	p.expectWord("for", "antispoof")
	p.list(func() {
		start := p.tok.Span
		dynamic := p.accept(token.LeftParen)
		i := p.interfaceName()
		if dynamic {
			p.checkDynamic(i.Name, i.Span)
			p.expect(token.RightParen, "the name of an interface")
			i.Span = start.To(p.last)
		}
		if i.Not {
			p.faults.Errorf(i.Span, "antispoof takes no !")
		}
		a.Interfaces = append(a.Interfaces, ast.AntispoofInterface{Interface: i, Dynamic: dynamic})
	})
	a.Family, _ = p.family()
	for p.isWord("label") || p.isIdentifier() {
		switch at := p.tok.Span; {
		case p.acceptWord("label"):
			p.label(&a.Label, &a.MoreLabels)
		case p.isIdentifier():
			p.identifier(&a.Identifier, at)
		}
	}
	a.Span = a.Span.To(p.last)
	return a
}
