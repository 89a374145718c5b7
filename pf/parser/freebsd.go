package parser

import (
	"weir/pf/ast"
	"weir/pf/token"
)

// freebsdStatements are the statements that only FreeBSD's pf has, by the word
// that they start with or the one behind no.
var freebsdStatements = map[string]func(*parser) ast.Stmt{
	"nat": (*parser).translation, "rdr": (*parser).translation, "binat": (*parser).translation,
	"nat-anchor": (*parser).translationAnchor, "rdr-anchor": (*parser).translationAnchor,
	"binat-anchor": (*parser).translationAnchor,
	"scrub":        (*parser).scrubRule,
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
