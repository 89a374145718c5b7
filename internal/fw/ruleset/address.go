package ruleset

import (
	"net/netip"

	"weir/pf/resolve"
)

// addresses is what an address in a rule means now. If several entries hold an address,
// the one with the longest prefix counts.
type addresses []resolve.TableEntry

// resolve returns what the address means now. It ignores Not.
func (c *compiler) resolve(a *resolve.Address) addresses {
	switch a.Kind {
	case resolve.TableAddress:
		return c.tables[a.Table]
	case resolve.InterfaceAddress:
		var found addresses
		for _, p := range c.snapshot.dynamic(a, func(Address) bool { return true }) {
			found = append(found, resolve.TableEntry{Prefix: p})
		}
		return found
	}
	return addresses{{Prefix: a.Prefix}}
}

// dynamic returns what (if) means, using the addresses for which suits is true. With
// :network that is the networks (without link-local ones, as in pf), with :broadcast and
// :peer those addresses, otherwise the interface's addresses, cut to the given bits. :0
// keeps only the first of each interface and family.
func (s *Snapshot) dynamic(a *resolve.Address, suits func(Address) bool) []netip.Prefix {
	var found []netip.Prefix
	for _, i := range s.named(a.Interface) {
		seen := map[bool]bool{}
		for _, has := range i.Addresses {
			asked, ok := i.selected(has.Prefix, has.Peer, a.Modifier)
			if !ok || a.NoAlias && seen[asked.Addr().Is4()] || !suits(has) {
				continue
			}
			seen[asked.Addr().Is4()] = true
			found = append(found, cut(asked, a))
		}
	}
	return found
}

// selected applies a modifier to an address of the interface.
func (i *Interface) selected(p netip.Prefix, peer netip.Addr, m resolve.Modifier) (_ netip.Prefix, ok bool) {
	switch m {
	case resolve.NetworkModifier:
		return p, p.Addr().Is4() || !p.Addr().IsLinkLocalUnicast()
	case resolve.BroadcastModifier:
		last, ok := resolve.Broadcast(p)
		return netip.PrefixFrom(last, last.BitLen()), ok && !i.loopback()
	case resolve.PeerModifier:
		return netip.PrefixFrom(peer, peer.BitLen()), peer.IsValid()
	}
	return p, true
}

// spans returns the addresses that an address in a rule means now, for IPv4 and IPv6.
func (c *compiler) spans(a *resolve.Address) [2][]span {
	if a.Kind == resolve.RangeAddress {
		s := []span{{numberOf(a.Prefix.Addr()), numberOf(a.Last)}}
		if a.Last.Is4() {
			return [2][]span{s, nil}
		}
		return [2][]span{nil, s}
	}
	held := c.resolve(a)
	return [2][]span{held.spans(true), held.spans(false)}
}

func cut(p netip.Prefix, a *resolve.Address) netip.Prefix {
	bits := p.Addr().BitLen()
	switch {
	case a.Modifier == resolve.NetworkModifier:
		bits = p.Bits()
	case a.Bits > 0:
		bits = min(a.Bits, bits)
	}
	return netip.PrefixFrom(p.Addr(), bits).Masked()
}
