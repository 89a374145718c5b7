package parser

import (
	"strings"

	"weir/pf/ast"
	"weir/pf/token"
)

var translations = map[string]ast.TranslationKind{"nat": ast.NatRule, "rdr": ast.RdrRule, "binat": ast.BinatRule, "dummynet": ast.DummynetRule}

// translation reads a FreeBSD translation rule: [no] nat, rdr or binat.
func (p *parser) translation() ast.Stmt {
	t := &ast.Translation{Keyword: p.tok.Span}
	t.Span = p.tok.Span
	t.No = p.acceptWord("no")
	t.Kind = translations[p.tok.Text]
	t.Keyword = t.Keyword.To(p.tok.Span)
	p.advance()
	at := p.tok.Span
	t.Pass = p.acceptWord("pass")
	if t.No && t.Pass {
		p.faults.Errorf(at, "no %s translates nothing, so it takes no pass", t.Kind)
	}
	if at = p.tok.Span; p.acceptWord("log") {
		t.Log = p.logOptions(at)
	}
	p.translationHead(t)
	p.translationOptions(t)
	p.target(t)
	t.Span = t.Span.To(p.last)
	return t
}

// translationHead reads the conditions of a translation rule.
func (p *parser) translationHead(t *ast.Translation) {
	p.on(&t.Rule)
	t.Family, t.FamilySpan = p.family()
	p.proto(&t.Rule)
	p.fromTo(&t.Rule)
}

// translationOptions reads the options of a translation rule.
func (p *parser) translationOptions(t *ast.Translation) {
	for {
		at := p.tok.Span
		switch {
		case p.acceptWord("tag"):
			p.once(&t.Tag, at, "tag")
		case p.isWord("tagged"), p.is(token.Not):
			p.tagged(&t.Rule)
		case p.acceptWord("rtable"):
			p.rtable(&t.Rule, at)
		default:
			return
		}
		p.accept(token.Comma)
	}
}

// target reads -> and the new addresses.
func (p *parser) target(t *ast.Translation) {
	at := p.tok.Span
	found := p.accept(token.Arrow)
	switch {
	case t.No && found:
		p.fail(at, "no %s translates nothing, so it takes no ->", t.Kind)
	case t.No:
		return
	case !found && !p.is(token.Newline) && !p.is(token.EOF) && !p.is(token.RightBrace):
		p.unexpected()
	case !found:
		p.expected(`"->" and an address`)
	}
	t.Target = p.pool(at, "->")
}

// translationAnchor reads nat-anchor, rdr-anchor, binat-anchor, or macOS's dummynet-anchor.
func (p *parser) translationAnchor() ast.Stmt {
	word := p.tok.Text
	t := &ast.Translation{Keyword: p.tok.Span, Kind: translations[strings.TrimSuffix(word, "-anchor")]}
	t.Span = p.tok.Span
	p.advance()
	if !p.tok.IsText() {
		p.expected("the name of an anchor")
	}
	name := p.anchorPath()
	t.Ruleset = &name
	p.translationHead(t)
	if at := p.tok.Span; p.acceptWord("rtable") {
		p.rtable(&t.Rule, at)
	}
	if p.is(token.Arrow) {
		p.fail(p.tok.Span, "%s itself translates nothing; the rules in its anchor do", word)
	}
	t.Span = t.Span.To(p.last)
	return t
}
