package parser

import (
	"encoding/base64"
	"net/netip"
	"strconv"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// Limits of WireGuard tunnels.
const (
	leastTunnelMTU = 1280 // of IPv6
	mostTunnelMTU  = 9000
	tunnelKey      = 32 // bytes
	leastPorts     = 2  // of a wide link
)

var (
	wireguardWords = []string{"port", "key", "address", "mtu", "engine", "dscp", "no"}
	peerWords      = []string{"key", "psk", "endpoint", "allowed", "keepalive", "show-load", "show-summary", "wide", "no"}
)

// wireguard reads the definition of a tunnel's interface.
func (p *parser) wireguard() ast.Stmt {
	s := &ast.WireGuard{Span: p.tok.Span}
	p.advance()
	s.Name = p.name("the name of an interface")
	if len(s.Name.Text) > maxInterfaceName {
		p.faults.Errorf(s.Name.Span, "the name of an interface has at most %d characters", maxInterfaceName)
	}
	p.tunnelOptions("a WireGuard interface", wireguardWords, func(word string) bool { return p.wireguardOption(s, word) })
	s.Span = s.Span.To(p.last)
	if s.Key == nil {
		p.faults.Errorf(s.Span, `a WireGuard interface needs its private key: key file "/path"; weir vpn genkey writes one`)
	}
	return s
}

// peer reads the definition of a tunnel's other end.
func (p *parser) peer() ast.Stmt {
	s := &ast.Peer{Span: p.tok.Span}
	p.advance()
	s.Name = p.name("the name of a peer")
	p.expectWord("on", "the name of a peer")
	s.On = p.name("the name of a WireGuard interface")
	p.tunnelOptions("a peer", peerWords, func(word string) bool { return p.peerOption(s, word) })
	s.Span = s.Span.To(p.last)
	if s.Key == nil {
		p.faults.Errorf(s.Span, `a peer needs its public key: key "…"`)
	}
	return s
}

// tunnelOptions reads the options that follow a name. read reads the one of a word.
func (p *parser) tunnelOptions(what string, words []string, read func(word string) bool) {
	said := map[string]token.Span{}
	for p.accept(token.Comma) || p.is(token.Word) {
		word, at := p.tok.Text, p.tok.Span
		p.advance()
		if word == "no" {
			word = "no " + p.tok.Text
			p.advance()
		}
		if first, again := said[word]; again {
			p.givenTwice(at, first, word)
		}
		said[word] = at
		if !read(word) {
			p.failWith(diag.Diagnostic{Span: at.To(p.last), Message: what + " has no option " + strconv.Quote(word), Suggest: diag.Nearest(word, words)})
		}
	}
}

func (p *parser) wireguardOption(s *ast.WireGuard, word string) bool {
	switch word {
	case "port":
		s.Port = p.tunnelNumber("a port", 1, 1<<16-1)
	case "key":
		s.Key = p.keyFile("key")
	case "address":
		p.list(func() { s.Addresses = append(s.Addresses, p.network("an address with the length of its prefix")) })
	case "mtu":
		s.MTU = p.tunnelNumber("the MTU of a tunnel", leastTunnelMTU, mostTunnelMTU)
	case "engine":
		w := p.name("kernel or userspace")
		if w.Text != "kernel" && w.Text != "userspace" {
			p.fail(w.Span, `expected "kernel" or "userspace", found %q`, w.Text)
		}
		s.Engine = &w
	case "dscp":
		if s.CopyDSCP = p.acceptWord("copy"); !s.CopyDSCP && !p.acceptWord("clear") {
			s.DSCP = p.dscp()
		}
	case "no route":
		s.NoRoute = true
	case "no max-mss":
		s.NoMSS = true
	default:
		return false
	}
	return true
}

func (p *parser) peerOption(s *ast.Peer, word string) bool {
	switch word {
	case "key":
		s.Key = p.publicKey()
	case "psk":
		s.PSK = p.keyFile("psk")
	case "endpoint":
		p.list(func() { s.Ways = append(s.Ways, p.way()) })
	case "allowed":
		p.list(func() {
			n := p.network("a network of the peer")
			n.Prefix = n.Masked()
			s.Allowed = append(s.Allowed, n)
		})
	case "keepalive":
		s.Keepalive = p.tunnelNumber("the seconds of keepalive", 1, 1<<16-1)
	case "show-load":
		s.ShowLoad = true
	case "show-summary":
		s.ShowSummary = true
	case "wide":
		if s.WideAuto = p.acceptWord("auto"); !s.WideAuto {
			s.Wide = p.tunnelNumber("the number of ports of a wide link", leastPorts, ast.MostPorts)
		}
	case "no route":
		s.NoRoute = true
	default:
		return false
	}
	return true
}

// way reads an endpoint of a peer.
func (p *parser) way() ast.Way {
	at := p.tok.Span
	w := ast.Way{Host: p.name("the address or the name of the peer")}
	if p.acceptWord("port") {
		w.Port = p.tunnelNumber("a port", 1, 1<<16-1)
	}
	if p.acceptWord("on") {
		on := p.name("the interface that packets to the endpoint leave by")
		w.On = &on
	}
	w.Span = at.To(p.last)
	return w
}

func (p *parser) tunnelNumber(what string, least, most uint64) *ast.Count {
	at := p.tok.Span
	return &ast.Count{Span: at, N: uint32(p.within(what, least, most))}
}

// keyFile reads where a secret key is.
func (p *parser) keyFile(word string) *ast.Word {
	if !p.acceptWord("file") {
		p.fail(p.tok.Span, `write %s file "/path": weir reads no secret key from the configuration, which may be shown`, word)
	}
	w := p.name("the path of a file with a key")
	if !strings.HasPrefix(w.Text, "/") {
		p.faults.Errorf(w.Span, "the path of a file with a key begins with /")
	}
	return &w
}

// publicKey reads a key as wg(8) writes it.
func (p *parser) publicKey() *ast.Word {
	if p.is(token.Word) && p.isWord("file") {
		p.fail(p.tok.Span, "a peer's public key is no secret: write the key itself, in quotes")
	}
	w := p.name("a public key, in quotes")
	if b, err := base64.StdEncoding.Strict().DecodeString(w.Text); err != nil || len(b) != tunnelKey {
		p.fail(w.Span, "this is no public key: %d bytes in base64 and in quotes, as weir vpn pubkey prints them", tunnelKey)
	}
	return &w
}

// network reads an address with the length of a prefix, or an address alone.
func (p *parser) network(what string) ast.Network {
	w := p.name(what)
	a, err := netip.ParseAddr(w.Text)
	if err != nil || a.Zone() != "" || a.Is4In6() {
		p.fail(w.Span, "expected %s, found %q", what, w.Text)
	}
	n := ast.Network{Span: w.Span, Prefix: netip.PrefixFrom(a, a.BitLen())}
	if p.accept(token.Slash) {
		_, bits := p.number("the length of a prefix", uint64(a.BitLen()))
		n.Span, n.Prefix = w.Span.To(p.last), netip.PrefixFrom(a, int(bits))
	}
	return n
}
