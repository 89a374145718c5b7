package parser

import (
	"net/netip"
	"strings"

	"weir/pf/ast"
	"weir/pf/token"
)

// host reads an address: any, a table, an interface in parentheses, or a word for the
// resolver.
func (p *parser) host() ast.Host {
	start := p.tok.Span
	h := ast.Host{Bits: -1}
	if p.isWord("any") {
		p.advance()
		h.Span = start
		return h
	}
	if h.Not = p.accept(token.Not); h.Not && p.isWord("any") {
		p.fail(start.To(p.tok.Span), "! any matches no address")
	}
	switch {
	case p.accept(token.Less):
		h.Kind = ast.HostTable
		h.Name = p.tableName().Text
	case p.accept(token.LeftParen):
		h.Kind = ast.HostDynamic
		p.dynamicName(&h)
		p.expect(token.RightParen, "the name of an interface")
		p.bits(&h)
	case p.acceptWord("route"):
		h.Kind = ast.HostRouteLabel
		h.Name = p.routeLabel()
	default:
		h.Kind = ast.HostName
		p.hostName(&h, "an address")
		p.bits(&h)
		p.rangeEnd(&h, start)
	}
	h.Span = start.To(p.last)
	return h
}

// ruleHost reads an address of a rule's from or to.
func (p *parser) ruleHost() ast.Host {
	start, not := p.tok.Span, p.is(token.Not)
	word := p.tok
	if not {
		word = p.peek()
	}
	kind, special := specialHosts[word.Text]
	if !special || word.Kind != token.Word {
		h := p.host()
		if p.isWord("weight") {
			p.fail(p.tok.Span, "weight is allowed only after a translation address")
		}
		return h
	}
	if not {
		p.advance()
	}
	p.advance()
	return ast.Host{Span: start.To(p.last), Kind: kind, Not: not, Bits: -1}
}

// noURPF rejects urpf-failed where it is not allowed.
func (p *parser) noURPF(to *ast.Endpoint) {
	for _, h := range to.Hosts {
		if h.Kind == ast.HostURPFFailed {
			p.faults.Errorf(h.Span, "urpf-failed is allowed only after from")
		}
	}
}

// specialHosts are the words for addresses that depend on routes.
var specialHosts = map[string]ast.HostKind{"no-route": ast.HostNoRoute, "urpf-failed": ast.HostURPFFailed}

// rangeEnd reads the last address of a range, whose first is h.
func (p *parser) rangeEnd(h *ast.Host, start token.Span) {
	if !p.accept(token.Minus) {
		return
	}
	last := p.name("the last address of the range")
	if h.Bits >= 0 || p.is(token.Slash) {
		p.fail(start.To(p.tok.Span), "a range goes from an address to an address, not to a network")
	}
	h.Kind, h.LastName = ast.HostRange, last.Text
}

// maxRouteLabel is RTLABEL_LEN without the NUL.
const maxRouteLabel = 31

func (p *parser) routeLabel() string {
	label := p.name("the label of a route")
	if len(label.Text) > maxRouteLabel {
		p.fail(label.Span, "the label of a route has at most %d characters", maxRouteLabel)
	}
	return label.Text
}

// weight reads the weight of an address in a pool.
func (p *parser) weight(h *ast.Host) {
	if !p.acceptWord("weight") {
		return
	}
	w, n := p.number("the weight", 1<<16-1)
	if n == 0 {
		p.fail(w.Span, "a weight is at least 1")
	}
	h.Weight = uint16(n)
	h.Span = h.Span.To(p.last)
}

// hostName reads the word of a host and removes its modifiers.
func (p *parser) hostName(h *ast.Host, what string) {
	w := p.name(what)
	h.Name = w.Text
	if _, err := netip.ParseAddr(w.Text); err == nil {
		return // the :0 at the end of an address is not a modifier
	}
	defer p.oneModifier(h, w)
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
		case "broadcast":
			h.Broadcast = true
		case "peer":
			h.Peer = true
		default:
			return
		}
		if i == 0 {
			p.fail(w.Span, "%s is allowed only after the name of an interface", w.Text)
		}
		h.Name = h.Name[:i]
	}
}

// dynamicName reads the name of an interface in parentheses, with modifiers.
func (p *parser) dynamicName(h *ast.Host) {
	at := p.tok.Span
	p.hostName(h, "the name of an interface")
	if _, err := netip.ParseAddr(h.Name); err != nil { // otherwise the resolver reports the fault
		p.checkDynamic(h.Name, at)
	}
}

// checkDynamic rejects words that cannot be an interface's name in parentheses.
func (p *parser) checkDynamic(word string, at token.Span) {
	name, modifier, colon := strings.Cut(word, ":")
	switch {
	case colon:
		p.faults.Errorf(at, "unknown modifier :%s; interfaces have :network, :broadcast, :peer and :0", modifier)
	case name[0] >= '0' && name[0] <= '9':
		p.faults.Errorf(at, "%q is not the name of an interface or group, which begins with a letter", name)
	case len(name) > maxInterfaceName:
		p.faults.Errorf(at, "the name of an interface has at most %d characters", maxInterfaceName)
	}
}

// oneModifier checks that at most one modifier selects addresses.
func (p *parser) oneModifier(h *ast.Host, w ast.Word) {
	modes := 0
	for _, mode := range []bool{h.Network, h.Broadcast, h.Peer} {
		if mode {
			modes++
		}
	}
	if modes > 1 {
		p.faults.Errorf(w.Span, ":network, :broadcast and :peer exclude each other")
	}
}

// bits reads the length of a network's prefix after a slash.
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

var unaryPortOps = map[token.Kind]ast.PortOp{
	token.Equal: ast.PortEqual, token.NotEqual: ast.PortNotEqual,
	token.Less: ast.PortLess, token.LessEqual: ast.PortLessEqual,
	token.Greater: ast.PortGreater, token.GreaterEqual: ast.PortGreaterEqual,
}

var binaryPortOps = map[token.Kind]ast.PortOp{token.Inside: ast.PortInside, token.Outside: ast.PortOutside}

// unaryPortOp reads an operator before its operand, if there is one. Without one, the
// condition is equality.
func (p *parser) unaryPortOp() (op ast.PortOp, given bool) {
	if op, given = unaryPortOps[p.tok.Kind]; !given {
		return ast.PortEqual, false
	}
	p.advance()
	return op, true
}

// port reads one condition on a port.
func (p *parser) port() ast.Port {
	start := p.tok.Span
	op, unary := p.unaryPortOp()
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

// splitRange splits low:high.
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
	if int(w.End-w.Pos) == len(w.Text) { // false if part of it came from a macro
		low.End, high.Pos = w.Pos+token.Pos(i), w.Pos+token.Pos(i+1)
	}
	return low, high, true
}
