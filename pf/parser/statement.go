package parser

import (
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

func (p *parser) statement() ast.Stmt {
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
		switch p.tok.Text {
		case "pass", "block", "match":
			return p.rule()
		case "anchor":
			return p.anchor()
		case "load":
			return p.loadAnchor()
		case "antispoof":
			return p.antispoof()
		case "table":
			return p.table()
		case "set":
			return p.set()
		case "include":
			return p.include()
		case "state", "source":
			return p.limiterDef()
		case "pppoe":
			return p.pppoe()
		case "wireguard":
			return p.wireguard()
		case "peer":
			return p.peer()
		case "ikev2":
			return p.ikev2()
		case "queue", "oldqueue": // oldqueue: of altq in OpenBSD 5.5
			return p.queue()
		case "altq":
			return p.altq()
		case "pipe", "sched":
			start, kind := p.tok.Span, ast.Word{Span: p.tok.Span, Text: p.tok.Text}
			p.advance()
			number, _ := p.number("the number of a "+kind.Text, mostDummynet)
			return p.dummynetDef(start, kind, number)
		}
	}
	p.failWith(diag.Diagnostic{
		Span:    p.tok.Span,
		Message: "no statement starts with " + p.describe(),
		Suggest: meantStatement(p.tok.Text),
	})
	return nil
}

// otherWords are what other firewalls call pf's actions.
var otherWords = map[string]string{
	"allow": "pass", "accept": "pass", "permit": "pass", "deny": "block", "drop": "block", "reject": "block return",
}

// meantStatement returns what the first word of a statement was probably meant to be.
func meantStatement(word string) string {
	if meant, ok := otherWords[word]; ok {
		return meant
	}
	return diag.Nearest(word, statementWords)
}

// macro reads name = value, where the value is a row of words and strings. As in pf, the
// name may be one that no $name can refer to.
func (p *parser) macro() ast.Stmt {
	name := p.tok
	switch {
	case name.Text == "":
		p.fail(name.Span, `"" cannot name a macro`)
	case strings.ContainsAny(name.Text, " \t\r\n\v\f"):
		p.fail(name.Span, "%q cannot name a macro: it contains a space", name.Text)
	case name.Kind == token.Word && token.IsReserved(name.Text):
		p.fail(name.Span, "%q cannot name a macro: it is a keyword", name.Text)
	}
	p.advance()
	p.advance()
	var values []token.Token
	for ; p.tok.IsText(); p.advance() { // reads no token after the line before the macro is defined
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
	for p.antispoofOption(a) {
	}
	a.Span = a.Span.To(p.last)
	return a
}

// antispoofOption reads an option of antispoof, if one is here.
func (p *parser) antispoofOption(a *ast.Antispoof) bool {
	switch at := p.tok.Span; {
	case p.acceptWord("label"):
		p.label(&a.Label, &a.MoreLabels)
	case p.isIdentifier():
		p.identifier(&a.Identifier, at)
	case p.acceptWord("rtable"):
		last(p, &a.RTable, at, "rtable", p.rtableNumber())
	default:
		return false
	}
	return true
}
