package parser

import (
	"fmt"
	"strings"

	"weir/pf/ast"
	"weir/pf/token"
)

// Limits of anchors, as in pf.
const (
	maxAnchors    = 64   // anchors in anchors
	maxAnchorName = 63   // bytes of each name of a path
	maxAnchorPath = 1023 // bytes
)

// anchor reads an anchor and the rules in its braces. A fault before the braces does not
// hide faults after it.
func (p *parser) anchor() ast.Stmt {
	r := &ast.Rule{Span: p.tok.Span, Action: ast.Match, Anchor: &ast.Anchor{}}
	whole := p.attempt(func() { p.anchorHead(r) })
	if !whole {
		p.toBlock()
	}
	if p.is(token.LeftBrace) {
		p.block(r.Anchor)
	} else if whole {
		p.unnamed(r)
	}
	if !whole {
		return nil
	}
	r.Span = r.Span.To(p.last)
	return r
}

// anchorHead reads an anchor up to its braces. Its clauses are those of a rule.
func (p *parser) anchorHead(r *ast.Rule) {
	p.advance()
	if p.tok.IsText() && (p.tok.Kind != token.Word || !token.IsKeyword(p.tok.Text)) {
		r.Anchor.Name = p.anchorPath()
	}
	p.clauses(r)
	if r.Log != nil {
		p.faults.Errorf(r.Log.Span, "an anchor logs nothing; its rules can")
	}
	if !p.is(token.LeftBrace) {
		p.end()
	}
}

// unnamed rejects an anchor without a name and without rules.
func (p *parser) unnamed(r *ast.Rule) {
	if r.Anchor.Name.Text == "" {
		p.faults.Errorf(r.Span, "an anchor needs a name, or rules in braces")
	}
}

// anchorPath reads the name or path of an anchor.
func (p *parser) anchorPath() ast.Word {
	if p.tok.IsText() && p.tok.Text == "" {
		p.fail(p.tok.Span, "the name of an anchor is empty")
	}
	path := p.word("the name of an anchor")
	if len(path.Text) > maxAnchorPath {
		p.fail(path.Span, "the path of an anchor has at most %d characters", maxAnchorPath)
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(path.Text, "/"), "/") {
		switch {
		case name == "":
			p.fail(path.Span, "a name in the path %q is empty", path.Text)
		case len(name) > maxAnchorName:
			p.fail(path.Span, "the name of an anchor has at most %d characters", maxAnchorName)
		case name[0] == '_':
			p.fail(path.Span, "names of anchors that start with _ are for anchors without a name")
		}
	}
	return path
}

// block reads the statements of an anchor, in braces.
func (p *parser) block(a *ast.Anchor) {
	open := p.tok.Span
	if strings.Contains(a.Name.Text, "/") {
		p.faults.Errorf(a.Name.Span, "an anchor with rules of its own has a name, not a path")
	}
	if p.depth++; p.depth > maxAnchors {
		p.giveUp(open, fmt.Sprintf("anchors are nested more than %d deep", maxAnchors))
	}
	p.advance()
	p.blocks++
	for !p.closes(open) {
		if s := p.line(); s != nil {
			a.Body = append(a.Body, s)
		}
	}
	p.lists, p.items = 0, 0
	p.blocks--
	p.depth--
	p.accept(token.RightBrace)
	a.Braces = open.To(p.last)
}

// closes reports whether the innermost block, which began at open, ends here.
func (p *parser) closes(open token.Span) bool {
	if p.is(token.EOF) {
		p.giveUp(open, "the anchor is not closed")
		return true
	}
	return p.is(token.RightBrace) || p.faults.Full()
}

// giveUp reports, once, an error after which nothing can be read.
func (p *parser) giveUp(at token.Span, message string) {
	if !p.gaveUp {
		p.faults.Errorf(at, "%s", message)
	}
	p.gaveUp = true
	for !p.is(token.EOF) {
		p.advance()
	}
}

// attempt reports whether read finishes. If it gives up, the current token is the one
// that it could not read.
func (p *parser) attempt(read func()) (whole bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(bailout); !ok {
				panic(r)
			}
			whole = false
		}
	}()
	read()
	return true
}

// toBlock skips to the brace that opens a block, the last one of a line, or to the end of
// the line.
func (p *parser) toBlock() {
	for {
		switch p.tok.Kind {
		case token.EOF:
			return
		case token.Newline:
			if p.lists == 0 {
				return
			}
		case token.LeftBrace:
			if p.lists == 0 && p.peek().Kind == token.Newline {
				return
			}
			p.lists++
		case token.RightBrace:
			if p.lists == 0 {
				return
			}
			p.lists--
		}
		p.advance()
	}
}
