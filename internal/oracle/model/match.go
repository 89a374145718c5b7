package model

import (
	"net/netip"

	"go4.org/netipx"

	"weir/pf/ast"
	"weir/pf/resolve"
)

// matches reports whether a packet meets all conditions of a rule.
func (m *Model) matches(r *resolve.Rule, a *ruleInput) bool {
	return (r.Direction == ast.AnyDirection || r.Direction == a.direction) &&
		matchesInterface(&r.Interface, a.iface) &&
		(r.Family == ast.AnyFamily || int(r.Family) == a.family) &&
		matchesTranslation(r.Nat, a.family) && matchesTranslation(r.Rdr, a.family) &&
		(r.Proto == 0 || r.Proto == a.tuple.Proto) &&
		m.matchesEndpoint(&r.From, a.tuple.Src, a.began.Src, a.tuple.SPort, a) &&
		m.matchesEndpoint(&r.To, a.tuple.Dst, a.began.Dst, a.tuple.DPort, a) &&
		m.matchesSender(r, a) &&
		matchesFlags(r.Flags, a) && matchesICMP(&r.ICMP, a) && !(r.Action != ast.Block && r.State == resolve.KeepState && !r.Limits.Sloppy && isReply(a)) &&
		r.Marked.Match(a.mark) &&
		(r.Tagged == "" || (r.Tagged == a.tag) != r.NotTagged) &&
		m.matchesFilter(r, a)
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

// matchesEndpoint tests one end of a packet. Conditions on its route look at the address
// as it was before the rules of this crossing.
func (m *Model) matchesEndpoint(e *resolve.Endpoint, addr, began netip.Addr, port uint16, a *ruleInput) bool {
	proto := a.tuple.Proto
	if e.Port.Op != ast.AnyPort && (a.fragment || !hasPorts(proto) || !e.Port.Match(port)) {
		return false
	}
	if k := e.Addr.Kind; k == resolve.NoRouteAddress || k == resolve.URPFFailedAddress {
		addr = began
	}
	return e.Addr.Kind == resolve.AnyAddress || m.matchesAddress(&e.Addr, addr, a) != e.Addr.Not
}

func (m *Model) matchesAddress(e *resolve.Address, addr netip.Addr, a *ruleInput) bool {
	switch e.Kind {
	case resolve.TableAddress:
		return m.matchesTable(e.Table, addr)
	case resolve.InterfaceAddress:
		for _, p := range m.box.dynamic(e, anyAddress) {
			if p.Contains(addr) {
				return true
			}
		}
		return false
	case resolve.RangeAddress:
		first := e.Prefix.Addr()
		return addr.Is4() == first.Is4() && !addr.Less(first) && !e.Last.Less(addr)
	case resolve.NoRouteAddress:
		return !m.box.reaches(addr)
	case resolve.URPFFailedAddress:
		return m.box.failsURPF(addr, a.iface)
	case resolve.RouteAddress:
		return false // the box's routes have no labels
	}
	return e.Prefix.Contains(addr)
}

// reaches reports whether there is a route to an address. Marks do not steer it.
func (b *Box) reaches(addr netip.Addr) bool {
	return b.owner(addr) != nil || b.isOwn(addr) || b.Route(addr).Kind == RouteForward
}

// isOwn reports whether no route is needed to an address: it is one of the box itself, of
// a group, or of a link.
func (b *Box) isOwn(addr netip.Addr) bool {
	return b.broadcast(addr) || addr.IsMulticast() || addr.Is6() && addr.IsLinkLocalUnicast() || addr.IsLoopback() || addr.IsUnspecified()
}

// failsURPF reports whether the route to a source leads to another interface than the one
// that the packet crosses. An address of the box is at its own interface.
func (b *Box) failsURPF(addr netip.Addr, at *Interface) bool {
	if owner := b.owner(addr); owner != nil {
		return owner.Index != at.Index
	}
	if addr.IsLoopback() {
		return !at.Loopback
	}
	back := b.Route(addr)
	return !b.isOwn(addr) && (back.Kind != RouteForward || back.Interface != at.Index)
}

// matchesSender tests the user and group of the packet's socket, and the sender's system.
func (m *Model) matchesSender(r *resolve.Rule, a *ruleInput) bool {
	if a.fragment { // it shows neither
		return r.OS == "" && r.User == resolve.Owner{} && r.Group == resolve.Owner{}
	}
	return m.matchesSystem(r.OS, a) && r.User.Match(a.owner.User) && r.Group.Match(a.owner.Group)
}

// matchesTable looks for the longest prefix that contains the address. The address is in
// the table unless that entry is an excluded one.
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

func anyAddress(*Interface, netip.Addr) bool { return true }

// dynamic returns the present value of an (if), for the addresses that suit. With
// :network it is the networks (without link-local ones, as in pf), else the addresses,
// cut to /bits if given. With :0 it is only the first of each family.
func (b *Box) dynamic(a *resolve.Address, suits func(*Interface, netip.Addr) bool) []netip.Prefix {
	var found []netip.Prefix
	for _, i := range b.named(a.Interface) {
		seen := map[bool]bool{} // by family, for :0
		for _, p := range i.asked(a.Modifier, suits) {
			is4 := p.Addr().Is4()
			if a.NoAlias && seen[is4] {
				continue
			}
			seen[is4] = true
			found = append(found, cut(p, a))
		}
	}
	return found
}

// asked returns the addresses, with their networks, that a modifier selects.
func (i *Interface) asked(m resolve.Modifier, suits func(*Interface, netip.Addr) bool) (found []netip.Prefix) {
	if m == resolve.PeerModifier {
		for _, peer := range i.Peers {
			if suits(i, peer) {
				found = append(found, whole(peer))
			}
		}
		return found
	}
	for _, p := range i.Addresses {
		is4 := p.Addr().Is4()
		switch {
		case !suits(i, p.Addr()), m == resolve.NetworkModifier && !is4 && p.Addr().IsLinkLocalUnicast():
		case m != resolve.BroadcastModifier:
			found = append(found, p)
		case is4 && p.Bits() < 31 && !i.Loopback:
			found = append(found, whole(netipx.PrefixLastIP(p)))
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

// matchesFlags tests TCP packets only.
func matchesFlags(f resolve.TCPFlags, a *ruleInput) bool {
	if a.fragment {
		return a.tuple.Proto != protoTCP || f == resolve.TCPFlags{}
	}
	return a.tuple.Proto != protoTCP || a.tcpFlags&f.Mask == f.Set
}

func matchesICMP(t *resolve.ICMPType, a *ruleInput) bool {
	if !t.Asked {
		return true
	}
	return !a.fragment && isICMP(a.family, a.tuple.Proto) && a.icmpType == t.Type && (!t.HasCode || a.icmpCode == t.Code)
}

// isReply reports whether the packet is ICMP's reply to a query. As in pf, rules that keep
// state never match it: it belongs to the state of the query, or nobody asked.
func isReply(a *ruleInput) bool {
	if a.fragment || !isICMP(a.family, a.tuple.Proto) {
		return false
	}
	request, query := icmpQuery(a.family, a.icmpType)
	return query && a.icmpType != request
}

// whole returns the prefix of a single address.
func whole(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
