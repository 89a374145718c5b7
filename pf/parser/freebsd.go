package parser

import (
	"weir/pf/ast"
	"weir/pf/token"
)

// freebsd reads a statement that only FreeBSD's pf has. It recognises it by its first
// word, or by the one after no. It returns false if there is none here.
func (p *parser) freebsd() (s ast.Stmt, ok bool) {
	switch p.statementWord() {
	case "nat", "rdr", "binat":
		return p.translation(), true
	case "nat-anchor", "rdr-anchor", "binat-anchor", "dummynet-anchor":
		return p.translationAnchor(), true
	case "scrub":
		return p.scrubRule(), true
	case "scrub-anchor":
		return p.scrubAnchor(), true
	case "ether":
		return p.ether(), true
	case "dummynet":
		return p.dummynetRule(), true
	}
	return nil, false
}

// mayBeNegated are the statements that may follow no.
var mayBeNegated = setOf("nat", "rdr", "binat", "scrub", "dummynet")

// statementWord returns the word that identifies the statement here.
func (p *parser) statementWord() string {
	if next := p.peek(); p.isWord("no") && next.Kind == token.Word && mayBeNegated[next.Text] {
		return next.Text
	}
	return p.tok.Text
}
