package parser

import (
	"net/netip"
	"slices"
	"strings"

	"weir/pf/ast"
	"weir/pf/identity"
)

// Limits of IPsec tunnels.
const (
	leastLifetime    = 300 // seconds
	mostLifetime     = 86400
	leastIKELifetime = 1800
	mostIKELifetime  = 7 * 86400
	leastDPD         = 5
	mostDPD          = 3600
	mostIdentity     = 255
)

var ikev2Words = []string{
	"address", "mtu", "local", "peer", "passive", "srcid", "dstid", "psk", "certificate", "key", "ca", "from", "to", "networks",
	"proposals", "lifetime", "ikelifetime", "dpd", "encap", "per-cpu", "per-pair", "no",
}

// ProposalNames are the sets of algorithms that an IPsec tunnel may have.
var ProposalNames = []string{"modern", "suite-b", "compatible"}

// ikev2 reads the definition of an IPsec tunnel.
func (p *parser) ikev2() ast.Stmt {
	s := &ast.IKEv2{Span: p.tok.Span}
	p.advance()
	s.Name = p.name("the name of an interface")
	if len(s.Name.Text) > maxInterfaceName {
		p.faults.Errorf(s.Name.Span, "the name of an interface has at most %d characters", maxInterfaceName)
	}
	p.tunnelOptions("an ikev2 tunnel", ikev2Words, func(word string) bool {
		return p.ikev2End(s, word) || p.ikev2Secret(s, word) || p.ikev2Traffic(s, word) || p.ikev2Time(s, word)
	})
	s.Span = s.Span.To(p.last)
	p.wholeIKEv2(s)
	return s
}

// wholeIKEv2 reports what is missing in the definition, or too much.
func (p *parser) wholeIKEv2(s *ast.IKEv2) {
	fault := func(format string, args ...any) { p.faults.Errorf(s.Span, format, args...) }
	switch {
	case s.PSK == nil && s.Certificate == nil:
		fault(`an ikev2 tunnel needs psk file "/path", or certificate file "/path" with key file and ca file`)
	case s.PSK != nil && (s.Certificate != nil || s.Key != nil || s.CAs != nil):
		fault("an ikev2 tunnel has either a preshared key or certificates")
	case s.PSK == nil && (s.Key == nil || s.CAs == nil):
		fault(`certificate goes with key file "/path", its private key, and ca file "/path", who has signed the peer's`)
	}
	if s.Peer == nil && s.DstID == nil {
		fault(`write peer with an address or a name, or dstid: else nobody knows who the peer is`)
	}
}

// ikev2End reads an option that says where the two ends are, and who.
func (p *parser) ikev2End(s *ast.IKEv2, word string) bool {
	switch word {
	case "address":
		p.list(func() { s.Addresses = append(s.Addresses, p.network("an address with the length of its prefix")) })
	case "mtu":
		s.MTU = p.tunnelNumber("the MTU of a tunnel", leastTunnelMTU, mostTunnelMTU)
	case "local":
		w := p.name("an address of this machine")
		if a, err := netip.ParseAddr(w.Text); err != nil || a.Is4In6() {
			p.fail(w.Span, "expected an address of this machine, found %q", w.Text)
		}
		s.Local = &w
	case "peer":
		w := p.name("the address or the name of the peer")
		switch {
		case w.Text == "any" || isAny(w.Text):
			p.fail(w.Span, "leave peer out for one that comes from anywhere, and say who it is with dstid")
		case identity.Parse(w.Text).Many() || strings.ContainsAny(w.Text, "/%,; ") && !isHost(w.Text):
			p.fail(w.Span, "expected the address or the name of one peer, found %q", w.Text)
		}
		s.Peer = &w
	case "passive":
		s.Passive = true
	case "srcid":
		s.SrcID = p.identity()
	case "dstid":
		s.DstID = p.identity()
	case "encap":
		p.expectWord("udp", "encap")
		s.Encap = true
	default:
		return false
	}
	return true
}

// identity reads who an end is. One with a wildcard would be many, and so would a regular expression.
func (p *parser) identity() *ast.Word {
	w := p.name("an identity")
	switch {
	case w.Text == "any" || strings.ContainsAny(w.Text, "*%") || strings.HasPrefix(w.Text, "^") || identity.Parse(w.Text).Many():
		p.fail(w.Span, "an identity is that of one end: an address, a name, name@domain or the subject of a certificate, without wildcards")
	case identity.NoSubject(w.Text):
		p.fail(w.Span, "this is no subject of a certificate: its parts are NAME=value behind commas, or behind slashes if a part has a comma (\"/O=Example, Inc./CN=hq\"). For the number of a key write keyid: in front")
	case len(w.Text) > mostIdentity:
		p.fail(w.Span, "an identity has at most %d characters", mostIdentity)
	case strings.ContainsFunc(w.Text, func(c rune) bool { return c < ' ' || c == 0x7f }):
		p.fail(w.Span, "an identity has no control characters")
	}
	return &w
}

func isHost(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// isAny reports whether an address is that of anybody.
func isAny(text string) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && a.IsUnspecified()
}

// ikev2Secret reads an option that says where keys and certificates are.
func (p *parser) ikev2Secret(s *ast.IKEv2, word string) bool {
	switch word {
	case "psk":
		s.PSK = p.keyFile("psk")
	case "certificate":
		s.Certificate = p.certificateFile("certificate")
	case "key":
		s.Key = p.keyFile("key")
	case "ca":
		p.list(func() { s.CAs = append(s.CAs, *p.certificateFile("ca")) })
	default:
		return false
	}
	return true
}

// certificateFile reads where certificates are.
func (p *parser) certificateFile(word string) *ast.Word {
	p.expectWord("file", word)
	w := p.name("the path of a file with a certificate")
	if !strings.HasPrefix(w.Text, "/") {
		p.faults.Errorf(w.Span, "the path of a file with a certificate begins with /")
	}
	return &w
}

// ikev2Traffic reads an option that says what the tunnel is for.
func (p *parser) ikev2Traffic(s *ast.IKEv2, word string) bool {
	networks := func(into *[]ast.Network) {
		p.list(func() {
			n := p.network("a network")
			n.Prefix = n.Masked()
			*into = append(*into, n)
		})
	}
	switch word {
	case "from":
		networks(&s.From)
	case "to":
		networks(&s.To)
	case "networks":
		networks(&s.Networks)
	case "no route":
		s.NoRoute = true
	case "no max-mss":
		s.NoMSS = true
	default:
		return false
	}
	return true
}

// ikev2Time reads an option that says by what packets are protected, and for how long.
func (p *parser) ikev2Time(s *ast.IKEv2, word string) bool {
	switch word {
	case "proposals":
		w := p.name("modern, suite-b or compatible")
		if !slices.Contains(ProposalNames, w.Text) {
			p.fail(w.Span, `expected "modern", "suite-b" or "compatible", found %q`, w.Text)
		}
		s.Proposals = &w
	case "lifetime":
		s.Lifetime = p.tunnelNumber("the lifetime of keys in seconds", leastLifetime, mostLifetime)
	case "ikelifetime":
		s.IKELifetime = p.tunnelNumber("the lifetime of the keys for IKE in seconds", leastIKELifetime, mostIKELifetime)
	case "dpd":
		s.DPD = p.tunnelNumber("the seconds of silence before the peer is asked", leastDPD, mostDPD)
	case "no dpd":
		s.NoDPD = true
	case "per-cpu":
		s.PerCPU = true
	case "per-pair":
		s.PerPair = true
	default:
		return false
	}
	return true
}
