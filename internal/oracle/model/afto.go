package model

import (
	"net/netip"

	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// familyChange is a packet that af-to has translated to the other family.
type familyChange struct {
	family   int
	tuple    state.Tuple
	src, dst End       // the possible ends of the packet
	chosen   []*target // the addresses that pools have given
}

// translateFamily applies af-to of the rule that decides. It begins with the packet as match
// rules have left it, and replaces their translations. The addresses are invalid if there
// are none to use.
func (m *Model) translateFamily(c *crossing, a *ruleInput) {
	r := c.rule
	w := &familyChange{family: int(r.AfTo.Family), tuple: c.seen}
	w.tuple.Proto = sameIn(w.family, c.seen.Proto)
	if isICMP(a.family, c.seen.Proto) {
		w.tuple.DPort = uint16(changedType(w.family, uint8(c.seen.DPort)))
	}
	m.changeSource(w, r, a)
	m.changeDestination(w, r, c.seen)
	c.other, c.nat, c.rdr = w, nil, nil
}

// changeSource chooses the source. An IPv6 network up to /96 embeds the IPv4 address
// instead.
func (m *Model) changeSource(w *familyChange, r *resolve.Rule, a *ruleInput) {
	seen := a.tuple
	from := &target{translation: r.AfTo.From}
	from.addr = m.takeAddress(r.AfTo.From, w.family, seen.Src, netip.Addr{})
	w.tuple.Src = from.addr
	addrs := m.candidates(from, w.family)
	if _, embeds := from.translation.Embedding(); embeds {
		w.tuple.Src = embed(addrs[0], seen.Src)
		addrs = hostOnly(w.tuple.Src)
	} else {
		w.chosen = append(w.chosen, from)
	}
	w.src = End{addrs, seen.SPort, seen.SPort}
	if !r.AfTo.From.StaticPort && a.hasPortToChoose() {
		ports := portsOf(from)
		w.src.Low, w.src.High = ports.low, ports.high
	}
}

// changeDestination finds the destination. It chooses one, or extracts it from the packet's
// IPv6 address behind the rule's network, or embeds it in the network of the source.
func (m *Model) changeDestination(w *familyChange, r *resolve.Rule, seen state.Tuple) {
	dst, port := netip.Addr{}, w.tuple.DPort
	var addrs []netip.Prefix
	switch to := r.AfTo.To; {
	case to != nil:
		chosen := &target{translation: to}
		chosen.addr = m.takeAddress(to, w.family, seen.Src, netip.Addr{})
		dst, addrs = chosen.addr, m.candidates(chosen, w.family)
		if _, embeds := to.Embedding(); embeds {
			dst = embed(addrs[0], seen.Dst)
			addrs = hostOnly(dst)
		} else {
			w.chosen = append(w.chosen, chosen)
		}
		if to.PortLow != 0 && translatesPorts(seen.Proto) {
			port = to.PortLow
		}
	case w.family == 4:
		dst = extract(r.To.Addr.Prefix, seen.Dst)
		addrs = hostOnly(dst)
	default:
		if bits, ok := r.AfTo.SourceNetwork(); ok {
			if src := w.tuple.Src; src.IsValid() {
				dst = embed(netip.PrefixFrom(src, bits), seen.Dst)
			}
		} else if from := m.candidates(&target{translation: r.AfTo.From}, w.family); len(from) > 0 {
			dst = embed(netip.PrefixFrom(from[0].Addr(), min(from[0].Bits(), maxEmbedding)), seen.Dst)
		}
		addrs = hostOnly(dst)
	}
	w.tuple.Dst, w.tuple.DPort = dst, port
	w.dst = End{addrs, port, port}
}

func hostOnly(a netip.Addr) []netip.Prefix {
	if !a.IsValid() {
		return nil
	}
	return []netip.Prefix{netip.PrefixFrom(a, a.BitLen())}
}

// sameIn returns the protocol of a family that corresponds to proto of the other family.
func sameIn(family int, proto uint8) uint8 {
	switch {
	case family == 6 && proto == protoICMP:
		return protoICMPv6
	case family == 4 && proto == protoICMPv6:
		return protoICMP
	}
	return proto
}

// changedType returns the type of an ICMP query in a family that corresponds to t of the
// other family. Other types stay.
func changedType(family int, t uint8) uint8 {
	queries := map[uint8]uint8{8: 128, 0: 129}
	if family == 4 {
		queries = map[uint8]uint8{128: 8, 129: 0}
	}
	if other, ok := queries[t]; ok {
		return other
	}
	return t
}

// maxEmbedding is the longest IPv6 prefix that an IPv4 address can follow (RFC 6052,
// 2.2).
const maxEmbedding = 96

// places returns the octets that hold an IPv4 address behind an IPv6 prefix (RFC 6052,
// 2.2); octet 8 stays zero. Nil: no address fits behind this prefix.
func places(bits int) []int {
	switch bits {
	case 32, 40, 48, 56, 64, 96:
	default:
		return nil
	}
	var at []int
	for i := bits / 8; len(at) < 4; i++ {
		if i != 8 {
			at = append(at, i)
		}
	}
	return at
}

// embed puts an IPv4 address into an IPv6 network.
func embed(network netip.Prefix, a netip.Addr) netip.Addr {
	at := places(network.Bits())
	if at == nil || !network.Addr().Is6() || !a.Is4() {
		return netip.Addr{}
	}
	whole, octets := network.Masked().Addr().As16(), a.As4()
	for i, place := range at {
		whole[place] = octets[i]
	}
	return netip.AddrFrom16(whole)
}

// extract returns the IPv4 address in an IPv6 address that begins with the network, or in
// its last octets if there is no network.
func extract(network netip.Prefix, a netip.Addr) netip.Addr {
	bits := maxEmbedding
	if network.IsValid() {
		bits = network.Bits()
	}
	at := places(bits)
	if at == nil || !a.Is6() {
		return netip.Addr{}
	}
	whole, octets := a.As16(), [4]byte{}
	for i, place := range at {
		octets[i] = whole[place]
	}
	return netip.AddrFrom4(octets)
}
