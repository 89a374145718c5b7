package parser

import (
	"strings"

	"weir/pf/ast"
	"weir/pf/token"
)

// divertTo reads an address and a port or, in FreeBSD's form, only a port, which is a program's.
func (p *parser) divertTo(r *ast.Rule, at token.Span) {
	d := &ast.Divert{Kind: ast.DivertTo}
	if next := p.peek(); p.is(token.Number) && !(next.Kind == token.Word && next.Text == "port") {
		d.Port = &ast.Number{Word: p.name("a port")}
	} else {
		h := p.host()
		if h.Kind != ast.HostName || h.Not || h.Bits >= 0 {
			p.faults.Errorf(h.Span, "divert-to takes an address")
		}
		d.Host, d.Port = &h, p.divertPort("the address of divert-to")
	}
	p.divert(r, d, at)
}

func (p *parser) divertReply(r *ast.Rule, at token.Span) {
	p.divert(r, &ast.Divert{Kind: ast.DivertReply}, at)
}

func (p *parser) divertPacket(r *ast.Rule, at token.Span) {
	p.divert(r, &ast.Divert{Kind: ast.DivertPacket, Port: p.divertPort("divert-packet")}, at)
}

func (p *parser) divertPort(after string) *ast.Number {
	p.expectWord("port", after)
	return &ast.Number{Word: p.name("a port")}
}

func (p *parser) divert(r *ast.Rule, d *ast.Divert, at token.Span) {
	d.Span = at.To(p.last)
	if r.Divert != nil {
		p.givenTwice(d.Span, r.Divert.Span, "where packets are diverted to")
		return
	}
	r.Divert = d
}

// reassembled reads what is reassembled, which can only be tcp, in upper or lower case.
func (p *parser) reassembled() {
	if p.tok.IsText() && strings.EqualFold(p.tok.Text, "tcp") {
		p.advance()
		return
	}
	p.expectWord("tcp", "reassemble")
}

// scrub reads how packets are normalised. set-tos is FreeBSD's set tos.
func (p *parser) scrub(r *ast.Rule, at token.Span) {
	p.expect(token.LeftParen, "scrub")
	s := &ast.Scrub{}
	for {
		p.scrubOption(r, s)
		p.comma(token.RightParen)
		if p.accept(token.RightParen) {
			break
		}
	}
	s.Span = at.To(p.last)
	last(p, &r.Scrub, at, "scrub", s)
}

func (p *parser) scrubOption(r *ast.Rule, s *ast.Scrub) {
	at := p.tok.Span
	flag := func(set *bool, name string) {
		if *set {
			p.faults.Errorf(at, "%s is given twice", name)
		}
		*set = true
	}
	switch {
	case p.acceptWord("no-df"):
		flag(&s.NoDF, "no-df")
	case p.acceptWord("random-id"):
		flag(&s.RandomID, "random-id")
	case p.acceptWord("reassemble"):
		p.reassembled()
		flag(&s.ReassembleTCP, "reassemble tcp")
	case p.acceptWord("min-ttl"):
		single(p, &s.MinTTL, at, "min-ttl", p.count("min-ttl", maxTTL))
	case p.acceptWord("max-mss"):
		single(p, &s.MaxMSS, at, "max-mss", p.count("max-mss", 1<<16-1))
	case p.acceptWord("set-tos"):
		single(p, &r.Set.TOS, at, "set-tos", p.tos())
	default:
		p.expected("no-df, random-id, min-ttl, max-mss or reassemble tcp in scrub (…)")
	}
}
