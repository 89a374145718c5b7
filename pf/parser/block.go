package parser

import (
	"weir/pf/ast"
	"weir/pf/token"
)

// maxTTL is the largest time to live of a packet.
const maxTTL = 255

// blockReturn reads how a block rule answers the sender of a packet.
func (p *parser) blockReturn(r *ast.Rule) {
	if r.Action != ast.Block {
		return
	}
	at := p.tok.Span
	switch {
	case p.acceptWord("drop"):
		r.Return = &ast.Return{Kind: ast.Drop}
	case p.acceptWord("return"):
		r.Return = &ast.Return{Kind: ast.ReturnAll}
	case p.acceptWord("return-rst"):
		r.Return = &ast.Return{Kind: ast.ReturnRST}
		p.returnTTL(r.Return)
	case p.acceptWord("return-icmp"):
		r.Return = &ast.Return{Kind: ast.ReturnICMP}
		p.returnCodes(r.Return)
	case p.acceptWord("return-icmp6"):
		r.Return = &ast.Return{Kind: ast.ReturnICMP}
		if p.accept(token.LeftParen) {
			r.Return.Code6 = p.returnCode()
			p.expect(token.RightParen, "the ICMPv6 code")
		}
	default:
		return
	}
	r.Return.Span = at.To(p.last)
}

// returnTTL reads (ttl N), if it is here.
func (p *parser) returnTTL(r *ast.Return) {
	if !p.accept(token.LeftParen) {
		return
	}
	p.expectWord("ttl", "return-rst (")
	_, ttl := p.number("the ttl", maxTTL)
	r.TTL = uint8(ttl)
	p.expect(token.RightParen, "the ttl")
}

// returnCodes reads (code) or (code, code6), if it is here.
func (p *parser) returnCodes(r *ast.Return) {
	if !p.accept(token.LeftParen) {
		return
	}
	r.Code = p.returnCode()
	p.accept(token.Comma)
	if !p.is(token.RightParen) {
		r.Code6 = p.returnCode()
	}
	p.expect(token.RightParen, "the ICMP codes")
}

func (p *parser) returnCode() *ast.Number {
	return &ast.Number{Word: p.name("an ICMP code")}
}
