package model

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// A plainRule is a translation or filter rule in the words of FreeBSD's pf.conf(5).
// plainFate uses only these and the order of the kernel's lists. It shares nothing with
// the resolver and the model except the text of a plainRule.
type plainRule struct {
	kind         string // nat, rdr, binat, pass, block
	no           bool
	pass, quick  bool
	direction    string // of filter rules; empty: both
	on           string // empty: any
	notOn        bool
	proto        string
	from, to     string // an address or network; empty: any
	notTo        bool
	low, high    uint16 // of the destination; 0: any
	tag, tagged  string
	target       []string
	tlow, thigh  uint16
	star, static bool
}

func (r *plainRule) String() string {
	words := []string{r.kind}
	if r.no {
		words = []string{"no", r.kind}
	}
	add := func(yes bool, w ...string) {
		if yes {
			words = append(words, w...)
		}
	}
	host := func(h string, not bool) string {
		switch {
		case h == "":
			return "any"
		case not:
			return "! " + h
		}
		return h
	}
	add(r.pass, "pass")
	add(r.direction != "", r.direction)
	add(r.quick, "quick")
	add(r.on != "" && r.notOn, "on !", r.on)
	add(r.on != "" && !r.notOn, "on", r.on)
	add(r.proto != "", "proto", r.proto)
	add(true, "from", host(r.from, false), "to", host(r.to, r.notTo))
	add(r.low != 0 && r.high == r.low, "port", fmt.Sprint(r.low))
	add(r.low != 0 && r.high != r.low, "port", fmt.Sprintf("%d:%d", r.low, r.high))
	add(r.tag != "", "tag", r.tag)
	add(r.tagged != "", "tagged", r.tagged)
	if len(r.target) == 0 {
		return strings.Join(words, " ")
	}
	add(true, "-> {", strings.Join(r.target, ", "), "}")
	switch {
	case r.star:
		add(true, "port", fmt.Sprintf("%d:*", r.tlow))
	case r.thigh > r.tlow:
		add(true, "port", fmt.Sprintf("%d:%d", r.tlow, r.thigh))
	case r.tlow != 0:
		add(true, "port", fmt.Sprint(r.tlow))
	}
	add(r.static, "static-port")
	return strings.Join(words, " ")
}

// A plainPacket is a packet on its way, and what it may have become.
type plainPacket struct {
	proto        string
	src, dst     netip.Addr
	sport, dport uint16
	tag          string
	srcs, dsts   []string // possible values of src and dst: all of a pool; src and dst are the first
	low, high    uint16   // of the source port
}

func within(a netip.Addr, network string) bool {
	if network == "" {
		return true
	}
	p, err := netip.ParsePrefix(network)
	return err == nil && p.Contains(a) || err != nil && netip.MustParseAddr(network) == a
}

func (r *plainRule) family() bool { // whether the rule's addresses are IPv6
	for _, a := range append([]string{r.from, r.to}, r.target...) {
		if a != "" {
			return strings.Contains(a, ":")
		}
	}
	return false
}

func (r *plainRule) named() bool { return r.from != "" || r.to != "" || len(r.target) > 0 }

// asks reports whether the rule matches the packet, with src and dst as from and to.
func (r *plainRule) asks(p *plainPacket, iface, from, to string, notFrom, notTo bool) bool {
	return (r.on == "" || (r.on == iface) != r.notOn) &&
		(!r.named() || r.family() == p.src.Is6()) &&
		(r.proto == "" || r.proto == p.proto) &&
		within(p.src, from) != (notFrom && from != "") && within(p.dst, to) != (notTo && to != "") &&
		(r.low == 0 || p.dport >= r.low && p.dport <= r.high) &&
		(r.tagged == "" || r.tagged == p.tag)
}

// exchanged returns addr with its network replaced by to.
func exchanged(addr netip.Addr, to string) netip.Addr {
	p := netip.MustParsePrefix(to)
	a, n := addr.AsSlice(), p.Addr().AsSlice()
	for bit := range p.Bits() {
		mask := byte(0x80 >> (bit % 8))
		a[bit/8] = a[bit/8]&^mask | n[bit/8]&mask
	}
	moved, _ := netip.AddrFromSlice(a)
	return moved
}

// translate evaluates one list. It reports whether a rule of it translated, and whether
// that passes the packet.
func translate(rules []plainRule, kind, direction, iface string, p *plainPacket) (done, passes bool) {
	for i := range rules {
		r := &rules[i]
		back := kind == "binat" && direction == "in" && !r.no
		switch {
		case r.kind != kind:
			continue
		case back && !r.asks(p, iface, r.to, r.target[0], r.notTo, false):
			continue
		case !back && !r.asks(p, iface, r.from, r.to, false, r.notTo):
			continue
		}
		if r.tag != "" {
			p.tag = r.tag
		}
		if r.no {
			return false, false
		}
		switch {
		case back:
			p.dst = exchanged(p.dst, r.from)
			p.dsts = []string{p.dst.String()}
		case kind == "binat":
			p.src = exchanged(p.src, r.target[0])
			p.srcs = []string{p.src.String()}
		case kind == "nat":
			p.src, p.srcs = netip.MustParseAddr(r.target[0]), r.target
			switch {
			case r.static:
			case r.tlow != 0:
				p.low, p.high = r.tlow, max(r.tlow, r.thigh)
			default:
				p.low, p.high = 50001, 65535
			}
		case kind == "rdr":
			p.dst, p.dsts = netip.MustParseAddr(r.target[0]), r.target
			switch {
			case r.star:
				p.dport = r.tlow + p.dport - r.low
			case r.tlow != 0 && r.thigh > r.tlow:
				p.dport = r.tlow + (p.dport-r.low)%(r.thigh-r.tlow+1)
			case r.tlow != 0:
				p.dport = r.tlow
			}
		}
		return true, r.pass
	}
	return false, false
}

// crosses reports whether a packet may cross an interface, and translates it.
func crosses(rules []plainRule, direction, iface string, p *plainPacket) bool {
	lists := []string{"rdr", "binat"}
	if direction == "out" {
		lists = []string{"binat", "nat"}
	}
	for _, kind := range lists {
		if done, passes := translate(rules, kind, direction, iface, p); passes {
			return true
		} else if done {
			break
		}
	}
	verdict := true
	for i := range rules {
		r := &rules[i]
		if r.kind != "pass" && r.kind != "block" || r.direction != "" && r.direction != direction || !r.asks(p, iface, r.from, r.to, false, r.notTo) {
			continue
		}
		verdict = r.kind == "pass"
		if r.tag != "" {
			p.tag = r.tag
		}
		if r.quick {
			break
		}
	}
	return verdict
}

// plainFate returns the fate of a packet in the box of these tests.
func plainFate(rules []plainRule, iface string, p plainPacket) string {
	p.srcs, p.dsts, p.low, p.high = []string{p.src.String()}, []string{p.dst.String()}, p.sport, p.sport
	if !crosses(rules, "in", iface, &p) {
		return "block"
	}
	out := "wan"
	switch {
	case slices.Contains([]string{"192.168.1.1", "203.0.113.5", "fd00:1::1", "2001:db8:5::5"}, p.dst.String()):
		out = ""
	case within(p.dst, "192.168.1.0/24"), within(p.dst, "fd00:1::/64"):
		out = "lan"
	}
	if out != "" && !crosses(rules, "out", out, &p) {
		return "block"
	}
	return fmt.Sprintf("%v:%d-%d > %v:%d", p.srcs, p.low, p.high, p.dsts, p.dport)
}
