package parser

import (
	"strings"

	"weir/pf/ast"
	"weir/pf/token"
)

// flagLetters are the TCP flags in the order of their bits.
const flagLetters = "FSRPAUEW"

// flags reads set/mask or any. at is the word flags.
func (p *parser) flags(r *ast.Rule, at token.Span) {
	f := &ast.Flags{}
	if !p.acceptWord("any") {
		if !p.is(token.Slash) {
			f.Set = p.flagSet()
		}
		p.expect(token.Slash, "the flags that must be set")
		f.Mask = p.flagSet()
	}
	f.Span = at.To(p.last)
	if r.Flags != nil {
		p.givenTwice(f.Span, r.Flags.Span, "flags")
		return
	}
	r.Flags = f
}

// flagSet reads letters of flags, which may be quoted.
func (p *parser) flagSet() uint8 {
	if !p.tok.IsText() || p.tok.Text == "" {
		p.expected("TCP flags")
	}
	set := uint8(0)
	for _, c := range p.tok.Text {
		i := strings.IndexRune(flagLetters, c)
		if i < 0 {
			p.fail(p.tok.Span, "unknown TCP flag %q; the flags are %s", c, flagLetters)
		}
		set |= 1 << i
	}
	p.advance()
	return set
}

// icmp reads icmp-type or icmp6-type.
func (p *parser) icmp(r *ast.Rule) {
	keyword := p.tok
	family := ast.Inet
	if p.isWord("icmp6-type") {
		family = ast.Inet6
	}
	p.advance()
	first := len(r.ICMP) == 0
	var types []ast.ICMP
	p.list(func() { types = append(types, p.icmpType(family)) })
	if !first {
		p.givenTwice(keyword.Span, r.ICMP[0].Span, keyword.Text)
		return
	}
	r.ICMP = types
}

func (p *parser) icmpType(family ast.Family) ast.ICMP {
	t := ast.ICMP{Family: family, Type: ast.Number{Word: p.name("an ICMP type")}}
	t.Span = t.Type.Span
	if p.acceptWord("code") {
		t.Code = &ast.Number{Word: p.name("an ICMP code")}
		t.Span = t.Span.To(p.last)
	}
	return t
}
