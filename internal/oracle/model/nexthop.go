package model

import (
	"net/netip"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// maxDetours is how often route-to may send a packet to another interface, whose rules
// are then evaluated too, as in pf.
const maxDetours = 3

// detour returns the route of the deciding rule's route-to, which replaces the machine's
// own; nil if there is none.
func (m *Model) detour(c *crossing, inside state.Tuple) *routed {
	if c.skipped || c.rule == nil || c.rule.Action != ast.Pass {
		return nil
	}
	r := c.rule.Route
	if r == nil || r.Kind != resolve.RouteTo {
		return nil
	}
	hops := m.hops(r, familyOf(inside.Dst))
	if len(hops) == 0 {
		return &routed{drop: reasonFor(reason.NATAddress)}
	}
	at := turn{r, familyOf(inside.Dst)}
	n := m.turns[at] + m.way
	if r.Choice.Type == resolve.SourceHash {
		n = hashOf(&r.Choice, inside.Src) + m.way
	} else {
		m.turns[at]++
	}
	m.ways = max(m.ways, uint64(len(hops)))
	return m.toHop(hops[n%uint64(len(hops))], inside)
}

// A hop is one next hop of a rule. Without an address it is the destination
// itself.
type hop struct {
	iface string
	addr  netip.Addr
}

// hops returns the next hops of a route in a family. The addresses of a network are taken
// as the route says, here the first.
func (m *Model) hops(r *resolve.Route, family int) []hop {
	var hops []hop
	for i := range r.Hops {
		h := &r.Hops[i]
		if h.Addr.Kind == resolve.AnyAddress {
			hops = append(hops, hop{iface: h.Interface})
			continue
		}
		for _, p := range m.hopAddrs(h, family) {
			hops = append(hops, hop{h.Interface, p.Addr()})
		}
	}
	return hops
}

// hopAddrs returns the addresses of a next hop. With af-to they are of the family in
// which the rule's packets come in, so if there is only one, any family is right.
func (m *Model) hopAddrs(h *resolve.NextHop, family int) []netip.Prefix {
	if h.Addr.Kind == resolve.PrefixAddress {
		return []netip.Prefix{h.Addr.Prefix}
	}
	return m.pool(&h.Addr, family)
}

// toHop returns the route to a next hop.
func (m *Model) toHop(h hop, inside state.Tuple) *routed {
	toward := h.addr
	if !toward.IsValid() {
		toward = inside.Dst
	}
	route := m.box.Route(toward)
	if h.iface != "" {
		named := m.box.named(h.iface)
		if len(named) == 0 {
			return &routed{drop: reasonFor(reason.Interface)}
		}
		if route.Kind != RouteForward || route.Interface != named[0].Index {
			route = Route{Interface: named[0].Index}
		}
	}
	if route.Kind != RouteForward {
		return &routed{up: reasonFor(reason.UpRoute)}
	}
	route.Gateway = toward
	opened := m.open(routed{route: route})
	return &opened
}

// leave evaluates the rules for a packet that goes out, and again if they send it out by
// another interface.
func (m *Model) leave(a ruleInput, inside state.Tuple, r routed) (*crossing, routed) {
	for n := 0; ; n++ {
		out := m.evaluate(a)
		d := m.detour(&out, inside)
		switch {
		case d == nil:
			return &out, r
		case d.drop != nil || d.up != nil || d.route.Interface == a.iface.Index:
			return &out, *d
		case n == maxDetours:
			return &out, routed{drop: reasonFor(reason.Interface)}
		}
		r = *d
		a.iface, a.tag, a.mark = m.box.byIndex(r.route.Interface), out.tag, out.mark.On(a.mark)
	}
}
