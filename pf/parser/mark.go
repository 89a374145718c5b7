package parser

import (
	"strconv"

	"weir/pf/ast"
	"weir/pf/token"
)

// setMarkMask reads the mask of set mark-mask.
func (p *parser) setMarkMask(start token.Span) ast.Stmt {
	n := p.markNumber("a mask after set mark-mask")
	return &ast.MarkMask{Span: start.To(p.last), Mask: n}
}

// marked reads a condition on a packet's mark.
func (p *parser) marked(r *ast.Rule, at token.Span, not bool) {
	m := p.mark(at)
	m.Not = not
	single(p, &r.Marked, at, "marked", m)
}

// mark reads N or N/MASK.
func (p *parser) mark(at token.Span) *ast.Mark {
	m := &ast.Mark{N: p.markNumber("a mark")}
	if p.accept(token.Slash) {
		mask := p.tok.Span
		m.Mask = p.markNumber("a mask")
		if m.Mask == 0 {
			p.fail(mask, "a mask of 0 has no bits")
		}
	}
	m.Span = at.To(p.last)
	return m
}

// markNumber reads a number of 32 bits, which may be hexadecimal.
func (p *parser) markNumber(what string) uint32 {
	if !p.tok.IsText() {
		p.expected(what)
	}
	n, err := strconv.ParseUint(p.tok.Text, 0, 32)
	if err != nil {
		p.fail(p.tok.Span, "%s is a number up to 0xffffffff, not %s", what, p.describe())
	}
	p.advance()
	return uint32(n)
}
