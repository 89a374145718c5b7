package parser

import (
	"net"
	"strconv"
	"strings"

	"weir/pf/ast"
	"weir/pf/token"
)

// ether reads a rule for frames, or an anchor of such rules.
func (p *parser) ether() ast.Stmt {
	e := &ast.Ether{Keyword: p.tok.Span}
	e.Span = p.tok.Span
	whole := p.attempt(func() { p.etherHead(e) })
	if !whole {
		p.toBlock()
	}
	if e.Anchor != nil && p.is(token.LeftBrace) {
		p.block(e.Anchor)
		p.onlyEther(e.Anchor)
	} else if whole && e.Anchor != nil && e.Anchor.Name.Text == "" {
		p.faults.Errorf(e.Keyword.To(p.last), "an anchor needs a name, or rules in braces")
	}
	if !whole {
		if e.Anchor == nil {
			p.resume()
		}
		return nil
	}
	e.Span = e.Span.To(p.last)
	return e
}

// etherHead reads a rule for frames up to the braces of an anchor.
func (p *parser) etherHead(e *ast.Ether) {
	p.advance()
	action, isAction := actions[p.tok.Text]
	switch {
	case p.acceptWord("anchor"):
		e.Action, e.Anchor = ast.Match, &ast.Anchor{}
		if p.tok.IsText() && (!p.is(token.Word) || !token.IsKeyword(p.tok.Text)) {
			e.Anchor.Name = p.anchorPath()
		}
	case p.is(token.Word) && isAction:
		e.Action = action
		p.advance()
	default:
		p.expected(`"pass", "block", "match" or "anchor" after ether`)
	}
	p.direction(&e.Rule)
	e.Quick = p.acceptWord("quick")
	p.on(&e.Rule)
	if p.acceptWord("bridge-to") {
		w := p.name("the name of an interface")
		e.BridgeTo = &w
	}
	if p.acceptWord("proto") {
		p.list(func() { e.Types = append(e.Types, p.etherType()) })
	}
	p.macs(e)
	p.l3(e)
	p.etherOptions(e)
	if e.Anchor == nil || !p.is(token.LeftBrace) {
		p.end()
	}
}

// etherType reads the protocol number of frames. As with pfctl, it cannot be 0.
func (p *parser) etherType() ast.EtherType {
	w := p.name("an EtherType, such as 0x0800")
	n, err := strconv.ParseUint(w.Text, 0, 16)
	if err != nil || n == 0 {
		p.fail(w.Span, "%q is not an EtherType: expected 1 to 0xffff", w.Text)
	}
	return ast.EtherType{Word: w, Number: uint16(n)}
}

// macs reads all, or from and to with frame addresses.
func (p *parser) macs(e *ast.Ether) {
	if p.acceptWord("all") {
		return
	}
	for _, side := range []struct {
		word string
		macs *[]ast.MAC
	}{{"from", &e.FromMACs}, {"to", &e.ToMACs}} {
		if !p.acceptWord(side.word) || p.acceptWord("any") {
			continue
		}
		p.list(func() { *side.macs = append(*side.macs, p.mac()) })
	}
}

// mac reads a frame address, which may have a length or a mask.
func (p *parser) mac() ast.MAC {
	start := p.tok.Span
	m := ast.MAC{Not: p.accept(token.Not), Mask: [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}
	w := p.name("a MAC address, such as 02:00:00:00:00:01")
	text, mask, masked := strings.Cut(w.Text, "&")
	m.Addr = p.macBytes(text, w.Span)
	switch {
	case p.accept(token.Slash):
		_, bits := p.number("the length of a prefix", 48)
		for bit := int(bits); bit < 48; bit++ {
			m.Mask[bit/8] &^= 0x80 >> (bit % 8)
		}
	case p.is(token.Char) && p.tok.Text == "&":
		p.advance()
		w := p.name("a mask")
		m.Mask = p.macBytes(w.Text, w.Span)
	case masked && mask == "":
		w := p.name("a mask")
		m.Mask = p.macBytes(w.Text, w.Span)
	case masked:
		m.Mask = p.macBytes(mask, w.Span)
	}
	m.Span = start.To(p.last)
	return m
}

func (p *parser) macBytes(s string, at token.Span) (m [6]byte) {
	mac, err := net.ParseMAC(s)
	if err != nil || len(mac) != len(m) || !strings.Contains(s, ":") {
		p.fail(at, "%q is not a MAC address: expected six pairs of hex digits separated by colons", s)
	}
	copy(m[:], mac)
	return m
}

// l3 reads the conditions on the IP addresses of a frame's packet.
func (p *parser) l3(e *ast.Ether) {
	if !p.acceptWord("l3") {
		return
	}
	p.fromTo(&e.Rule)
	for _, ports := range [][]ast.Port{e.From.Ports, e.To.Ports} {
		if len(ports) > 0 {
			p.faults.Errorf(ports[0].Span, "ether rules match addresses, not ports")
		}
	}
}

// etherOptions reads the options of a rule for frames, in any order.
func (p *parser) etherOptions(e *ast.Ether) {
	for {
		at := p.tok.Span
		switch {
		case p.acceptWord("queue"):
			paren := p.accept(token.LeftParen)
			p.once(&e.Queue, at, "queue")
			if paren {
				p.expect(token.RightParen, "the name of a queue")
			}
		case p.isIdentifier():
			p.identifier(&e.Identifier, at)
		case p.acceptWord("label"):
			p.label(&e.Label, &e.MoreLabels)
		case p.acceptWord("tag"):
			p.once(&e.Tag, at, "tag")
		case p.isWord("tagged"), p.is(token.Not):
			p.tagged(&e.Rule)
		case p.isWord("dnpipe"), p.isWord("dnqueue"):
			p.dummynet(&e.Rule)
		default:
			return
		}
	}
}

// onlyEther rejects other statements in an anchor of rules for frames.
func (p *parser) onlyEther(a *ast.Anchor) {
	for _, s := range a.Body {
		if _, ok := s.(*ast.Ether); !ok {
			p.faults.Errorf(s.Whole(), "an ether anchor contains only ether rules")
		}
	}
}
