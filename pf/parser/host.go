package parser

import (
	"net/netip"
	"strings"

	"weir/pf/ast"
	"weir/pf/token"
)

// host reads an address: any, a table, an interface in parentheses, or a word
// that the resolver makes something of.
func (p *parser) host() ast.Host {
	start := p.tok.Span
	h := ast.Host{Bits: -1}
	if p.isWord("any") {
		p.advance()
		h.Span = start
		return h
	}
	if h.Not = p.accept(token.Not); h.Not && p.isWord("any") {
		p.fail(start.To(p.tok.Span), "no address is not any")
	}
	switch {
	case p.accept(token.Less):
		h.Kind = ast.HostTable
		h.Name = p.tableName().Text
	case p.accept(token.LeftParen):
		h.Kind = ast.HostDynamic
		p.hostName(&h, "the name of an interface")
		p.expect(token.RightParen, "the name of an interface")
		p.bits(&h)
	default:
		h.Kind = ast.HostName
		p.hostName(&h, "an address")
		p.bits(&h)
	}
	h.Span = start.To(p.last)
	p.unsupportedHostTail()
	return h
}

// hostName reads the word of a host and takes the modifiers off it.
func (p *parser) hostName(h *ast.Host, what string) {
	w := p.name(what)
	h.Name = w.Text
	if _, err := netip.ParseAddr(w.Text); err == nil {
		return // the :0 at the end of an address is no modifier
	}
	for {
		i := strings.LastIndexByte(h.Name, ':')
		if i < 0 {
			return
		}
		switch h.Name[i+1:] {
		case "network":
			h.Network = true
		case "0":
			h.NoAlias = true
		case "broadcast", "peer":
			p.faults.Errorf(w.Span, "%s is not supported yet", h.Name[i:])
		default:
			return
		}
		if i == 0 {
			p.fail(w.Span, "%s stands behind the name of an interface", w.Text)
		}
		h.Name = h.Name[:i]
	}
}

// bits reads the length of a network's prefix behind a slash.
func (p *parser) bits(h *ast.Host) {
	if !p.accept(token.Slash) {
		return
	}
	if p.tok.Kind != token.Number {
		p.expected(`a number after "/"`)
	}
	_, n := p.number("the length of a prefix", 128)
	h.Bits = int(n)
}

// unsupportedHost goes past an address of a kind that is not supported yet.
func (p *parser) unsupportedHost() bool {
	for _, word := range []string{"no-route", "urpf-failed", "route"} {
		if p.isWord(word) {
			p.faults.Errorf(p.tok.Span, "%s is not supported yet", word)
			p.advance()
			if word == "route" {
				p.word("the label of a route")
			}
			return true
		}
	}
	return false
}

// unsupportedHostTail goes past what may stand behind an address.
func (p *parser) unsupportedHostTail() {
	if p.is(token.Minus) {
		p.faults.Errorf(p.tok.Span, "ranges of addresses are not supported yet")
		p.advance()
		p.word("an address")
	}
	if p.isWord("weight") {
		p.faults.Errorf(p.tok.Span, "weight is not supported yet")
		p.advance()
		p.number("the weight", 1<<16-1)
	}
}

var unaryPortOps = map[token.Kind]ast.PortOp{
	token.Equal: ast.PortEqual, token.NotEqual: ast.PortNotEqual,
	token.Less: ast.PortLess, token.LessEqual: ast.PortLessEqual,
	token.Greater: ast.PortGreater, token.GreaterEqual: ast.PortGreaterEqual,
}

var binaryPortOps = map[token.Kind]ast.PortOp{token.Inside: ast.PortInside, token.Outside: ast.PortOutside}

// port reads one condition on a port.
func (p *parser) port() ast.Port {
	start := p.tok.Span
	op, unary := unaryPortOps[p.tok.Kind]
	if unary {
		p.advance()
	}
	low := p.name("a port")
	port := ast.Port{Op: op, Low: ast.Number{Word: low}}
	if from, to, isRange := p.splitRange(low); isRange {
		port.Op, port.Low, port.High = ast.PortRange, from, to
		if _, binary := binaryPortOps[p.tok.Kind]; unary || binary {
			p.fail(low.Span, "a range of ports takes no operator")
		}
	}
	if binary, ok := binaryPortOps[p.tok.Kind]; ok && !unary {
		p.advance()
		port.Op, port.High = binary, ast.Number{Word: p.name("a port")}
	}
	port.Span = start.To(p.last)
	return port
}

// splitRange takes low:high apart.
func (p *parser) splitRange(w ast.Word) (low, high ast.Number, ok bool) {
	i := strings.IndexByte(w.Text, ':')
	if i < 0 {
		return low, high, false
	}
	if i == 0 || i == len(w.Text)-1 {
		p.fail(w.Span, "a range of ports needs a port on each side of the colon")
	}
	low.Word = ast.Word{Span: w.Span, Text: w.Text[:i]}
	high.Word = ast.Word{Span: w.Span, Text: w.Text[i+1:]}
	if int(w.End-w.Pos) == len(w.Text) { // not so if part of it came out of a macro
		low.End, high.Pos = w.Pos+token.Pos(i), w.Pos+token.Pos(i+1)
	}
	return low, high, true
}
