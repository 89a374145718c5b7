package parser

import (
	"weir/pf/ast"
	"weir/pf/token"
)

// freebsd reads a statement that only FreeBSD's pf has, told by the word that it
// starts with or the one behind no. It reports false if none stands here.
func (p *parser) freebsd() (s ast.Stmt, ok bool) {
	switch p.statementWord() {
	case "nat", "rdr", "binat":
		return p.translation(), true
	case "nat-anchor", "rdr-anchor", "binat-anchor":
		return p.translationAnchor(), true
	case "scrub":
		return p.scrubRule(), true
	case "ether":
		return p.ether(), true
	}
	return nil, false
}

// mayBeNegated are those that no may stand before.
var mayBeNegated = setOf("nat", "rdr", "binat", "scrub")

// statementWord is the word that tells which statement stands here.
func (p *parser) statementWord() string {
	if next := p.peek(); p.isWord("no") && next.Kind == token.Word && mayBeNegated[next.Text] {
		return next.Text
	}
	return p.tok.Text
}
