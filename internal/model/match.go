package model

import (
	"net/netip"

	"weir/pf/resolve"
)

// matches reports whether a packet has all that a rule asks for.
func (m *Model) matches(r *resolve.Rule, a *asked) bool {
	return (r.Direction == resolve.AnyDirection || r.Direction == a.direction) &&
		matchesInterface(&r.Interface, a.iface) &&
		(r.Family == resolve.AnyFamily || int(r.Family) == a.family) &&
		matchesTranslation(r.Nat, a.family) && matchesTranslation(r.Rdr, a.family) &&
		(r.Proto == 0 || r.Proto == a.tuple.Proto) &&
		m.matchesEndpoint(&r.From, a.tuple.Src, a.tuple.SPort, a.tuple.Proto) &&
		m.matchesEndpoint(&r.To, a.tuple.Dst, a.tuple.DPort, a.tuple.Proto) &&
		matchesFlags(r.Flags, a) && matchesICMP(&r.ICMP, a) &&
		(r.Tagged == "" || (r.Tagged == a.tag) != r.NotTagged)
}

func matchesInterface(on *resolve.Interface, i *Interface) bool {
	return on.Any || i.is(on.Name) != on.Not
}

// matchesTranslation keeps a rule with a translation of one family from
// packets of the other.
func matchesTranslation(t *resolve.Translation, family int) bool {
	if t == nil {
		return true
	}
	for _, a := range t.Addrs {
		if a.Kind == resolve.InterfaceAddress || familyOf(a.Prefix.Addr()) == family {
			return true
		}
	}
	return false
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

func (m *Model) matchesEndpoint(e *resolve.Endpoint, addr netip.Addr, port uint16, proto uint8) bool {
	if e.Port.Op != resolve.AnyPort && (proto != protoTCP && proto != protoUDP || !e.Port.Match(port)) {
		return false
	}
	return e.Addr.Kind == resolve.AnyAddress || m.matchesAddress(&e.Addr, addr) != e.Addr.Not
}

func (m *Model) matchesAddress(a *resolve.Address, addr netip.Addr) bool {
	switch a.Kind {
	case resolve.TableAddress:
		return m.matchesTable(a.Table, addr)
	case resolve.InterfaceAddress:
		for _, p := range m.box.dynamic(a, anyAddress) {
			if p.Contains(addr) {
				return true
			}
		}
		return false
	}
	return a.Prefix.Contains(addr)
}

// matchesTable looks for the longest prefix that holds the address; the
// address is in the table unless that entry is an excluded one.
func (m *Model) matchesTable(name string, addr netip.Addr) bool {
	longest, in := -1, false
	for _, t := range m.rules.Tables {
		if t.Name != name {
			continue
		}
		for _, e := range t.Entries {
			if e.Prefix.Contains(addr) && e.Prefix.Bits() > longest {
				longest, in = e.Prefix.Bits(), !e.Not
			}
		}
	}
	return in
}

func anyAddress(netip.Addr) bool { return true }

// dynamic returns what an (if) stands for now, of the addresses that suit: with
// :network its networks (link-local ones left out, as in pf), else its addresses,
// cut to /bits if given; with :0 the first of each family.
func (b *Box) dynamic(a *resolve.Address, suits func(netip.Addr) bool) []netip.Prefix {
	var found []netip.Prefix
	for _, i := range b.named(a.Interface) {
		seen := map[bool]bool{} // by family, for :0
		for _, p := range i.Addresses {
			is4 := p.Addr().Is4()
			if a.Modifier == resolve.NetworkModifier && p.Addr().IsLinkLocalUnicast() && !is4 || a.NoAlias && seen[is4] || !suits(p.Addr()) {
				continue
			}
			seen[is4] = true
			found = append(found, cut(p, a))
		}
	}
	return found
}

func cut(p netip.Prefix, a *resolve.Address) netip.Prefix {
	switch {
	case a.Modifier == resolve.NetworkModifier:
		return p.Masked()
	case a.Bits > 0 && a.Bits <= p.Addr().BitLen():
		return netip.PrefixFrom(p.Addr(), a.Bits).Masked()
	}
	return netip.PrefixFrom(p.Addr(), p.Addr().BitLen())
}

// matchesFlags asks TCP packets only.
func matchesFlags(f resolve.TCPFlags, a *asked) bool {
	return a.tuple.Proto != protoTCP || a.tcpFlags&f.Mask == f.Set
}

func matchesICMP(t *resolve.ICMPType, a *asked) bool {
	if !t.Asked {
		return true
	}
	return isICMP(a.family, a.tuple.Proto) && a.icmpType == t.Type && (!t.HasCode || a.icmpCode == t.Code)
}
