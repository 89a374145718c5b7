package ruleset

import (
	"net/netip"

	"weir/pf/resolve"
)

// An addresses is what an address in a rule stands for now: entries, of which
// the one with the longest prefix counts.
type addresses []resolve.TableEntry

// resolve returns what the address stands for; its Not is not asked.
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

// dynamic returns what (if) stands for, of the addresses that suit: with :network
// the networks (without link-local ones, as in pf), else the addresses, cut to
// the bits given; with :0 the first of each interface and family.
func (s *Snapshot) dynamic(a *resolve.Address, suits func(Address) bool) []netip.Prefix {
	var found []netip.Prefix
	for _, i := range s.named(a.Interface) {
		seen := map[bool]bool{}
		for _, has := range i.Addresses {
			addr := has.Prefix.Addr()
			linkLocal := addr.Is6() && addr.IsLinkLocalUnicast()
			if a.Modifier == resolve.NetworkModifier && linkLocal || a.NoAlias && seen[addr.Is4()] || !suits(has) {
				continue
			}
			seen[addr.Is4()] = true
			found = append(found, cut(has.Prefix, a))
		}
	}
	return found
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
