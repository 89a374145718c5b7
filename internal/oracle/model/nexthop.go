package model

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// maxDetours is how often route-to may send a packet to another interface, whose rules
// are then evaluated too, as in pf.
const maxDetours = 3

// takeHop takes a next hop of the rule that decides a crossing.
func (m *Model) takeHop(c *crossing, a *ruleInput) {
	if c.rule.Divert.Kind == resolve.DivertPacket && c.rule.Action == ast.Pass && m.box.Copies {
		c.program = true
		return
	}
	r := c.rule.Route
	if r == nil || c.rule.Action != ast.Pass || r.Kind == resolve.DupTo && !m.box.Copies {
		return
	}
	family := a.family
	if c.other != nil && r.Kind == resolve.RouteTo {
		family = c.other.family // as which packets go on; replies go back in their own
	}
	rows := m.hops(c.rule, family)
	chosen := m.choose(rows, &r.Choice, turn{r, family}, c.seen.Src, c.seen.Dst)
	if r.Kind == resolve.DupTo {
		c.copied, c.copies, c.copyTo = true, len(rows) > 0, chosen
		return
	}
	c.hop = &chosen
	if r.Kind != resolve.RouteTo || len(rows) == 0 {
		return
	}
	m.ways = max(m.ways, uint64(len(rows)))
	if m.way > 0 { // the first address of another row
		at := slices.IndexFunc(rows, func(r row) bool { return r.iface == chosen.iface && r.network.Contains(chosen.addr) })
		other := rows[(uint64(at)+m.way)%uint64(len(rows))]
		*c.hop = hop{other.network.Addr(), other.iface}
	}
}

// hops returns what a route chooses from in a family. A next hop without an address is
// unspecified: the packet's own destination.
func (m *Model) hops(r *resolve.Rule, family int) []row {
	if family != 4 || !r.Route.PreferIPv6 {
		return m.hopsOf(r, family, family)
	}
	inOrder := r.Route.Choice.Type == resolve.RoundRobin || r.Route.Choice.Type == resolve.LeastStates
	if of6 := m.hopsOf(r, family, 6); !inOrder && len(of6) > 0 {
		return of6
	}
	return m.hopsOf(r, family, 4, 6)
}

// hopsOf returns the same of some families.
func (m *Model) hopsOf(r *resolve.Rule, family int, families ...int) []row {
	var rows []row
	for i := range r.Route.Hops {
		h := &r.Route.Hops[i]
		switch {
		case h.Addr.Kind != resolve.AnyAddress:
			for _, of := range families {
				for _, p := range m.pool(&h.Addr, of) {
					rows = append(rows, row{p, h.Interface, h.Addr.Weight})
				}
			}
		case family == 4:
			rows = append(rows, row{netip.PrefixFrom(netip.IPv4Unspecified(), 32), h.Interface, h.Addr.Weight})
		default:
			rows = append(rows, row{netip.PrefixFrom(netip.IPv6Unspecified(), 128), h.Interface, h.Addr.Weight})
		}
	}
	return rows
}

// kind returns what the crossing's next hop is for. ok is false if it has none.
func (c *crossing) kind() (kind resolve.RouteKind, ok bool) {
	if c.hop == nil {
		return 0, false
	}
	return c.rule.Route.Kind, true
}

// routesTo returns the next hop of the crossing's route-to; nil: there is none.
func (c *crossing) routesTo() *hop {
	if kind, ok := c.kind(); ok && kind == resolve.RouteTo {
		return c.hop
	}
	return nil
}

// replyHop returns the next hop of reply-to: the in crossing's, else the out crossing's.
func replyHop(in, out *crossing) *hop {
	for _, c := range []*crossing{in, out} {
		if kind, ok := c.kind(); ok && kind == resolve.ReplyTo {
			return c.hop
		}
	}
	return nil
}

// toward returns a hop's gateway. Without an address that is where the packets go.
func (h *hop) toward(dst netip.Addr) *hop {
	if h.addr.IsValid() && h.addr.IsUnspecified() {
		return &hop{dst, h.iface}
	}
	return h
}

// toHop returns the route to a next hop.
func (m *Model) toHop(h *hop) routed {
	lost := routed{drop: reasonFor(reason.Gateway)}
	if !h.addr.IsValid() {
		return lost
	}
	route := Route{Kind: RouteNone}
	if !m.box.owns(h.addr) && !m.box.broadcast(h.addr) {
		route = m.box.Route(h.addr)
	}
	if h.iface != "" {
		named := m.box.named(h.iface)
		switch {
		case len(named) == 0:
			return lost
		case named[0].L3:
			route = Route{Interface: named[0].Index, MTU: linkMTU, Neighbour: true}
		case h.addr.Is6() && h.addr.IsLinkLocalUnicast():
			route = Route{Interface: named[0].Index, MTU: linkMTU}
		case route.Interface != named[0].Index || route.Gateway.IsValid():
			return lost // it is not on the link
		}
	}
	if route.Kind != RouteForward || h.iface == "" && h.addr.Is6() && h.addr.IsLinkLocalUnicast() {
		return lost
	}
	route.Gateway = h.addr
	return m.open(routed{route: route, chosen: h})
}

// takeTable notes the routing table that a rule names.
func (c *crossing) takeTable(r *resolve.Rule) {
	if r.RTable != nil {
		c.rtable = *r.RTable
	}
}

// byTable returns the route to a destination by one routing table: to the gateway that it
// names, as if a rule had chosen that.
func (m *Model) byTable(dst netip.Addr, table uint32) routed {
	if m.box.TableRoute == nil {
		return routed{route: m.box.Route(dst)}
	}
	r := m.box.TableRoute(dst, table)
	if r.Kind != RouteForward {
		return routed{drop: reasonFor(reason.Gateway)}
	}
	to := hop{addr: dst}
	if r.Gateway.IsValid() {
		to.addr = r.Gateway
	}
	if i := m.box.byIndex(r.Interface); i != nil {
		to.iface = i.Name
	}
	return m.toHop(&to)
}

// leavesBy reports whether packets for a chosen gateway leave by an interface. The stack
// routes none of them.
func (m *Model) leavesBy(h *hop, ifindex uint32) bool {
	if h.iface != "" {
		named := m.box.named(h.iface)
		return len(named) > 0 && named[0].Index == ifindex
	}
	return m.toHop(h).route.Interface == ifindex
}

// linkMTU is the MTU of interfaces if no route says another.
const linkMTU = 1500

// leave evaluates the rules for a packet that goes out, and follows their route-to.
func (m *Model) leave(p *packet, a ruleInput, inside state.Tuple, r routed) (*crossing, routed) {
	return m.detour(p, a, m.evaluate(a), inside, r)
}

// detour evaluates the rules again if those of a crossing send a packet out by another
// interface. If none matches there, those before count.
func (m *Model) detour(p *packet, a ruleInput, out crossing, inside state.Tuple, r routed) (*crossing, routed) {
	for n := 0; ; n++ {
		h := out.routesTo()
		if h == nil || m.verdict(&out, p) != nil {
			return &out, r
		}
		to := m.toHop(h.toward(inside.Dst))
		switch {
		case to.drop != nil || to.route.Interface == a.iface.Index:
			return &out, to
		case n == maxDetours:
			return &out, routed{drop: reasonFor(reason.Gateway)}
		}
		r = to
		a.iface, a.tag, a.mark = m.box.byIndex(r.route.Interface), out.tag, out.mark.On(a.mark)
		next := m.evaluate(a)
		if next.refused == nil && next.rule == nil && next.nat == nil && next.rdr == nil {
			out.hop, out.iface = nil, r.route.Interface
			return &out, r
		}
		out = next
	}
}

// chosenObstacle returns why a packet cannot be redirected to a chosen gateway at once, or
// nil.
func (m *Model) chosenObstacle(p *packet, r Route) *reason.Reason {
	switch {
	case p.options:
		return reasonFor(reason.UpOptions)
	case p.ttl <= 1:
		return reasonFor(reason.UpTTL)
	case p.length() > r.MTU:
		return reasonFor(reason.UpMTU)
	case !r.Neighbour:
		return reasonFor(reason.UpNeighbour)
	case p.hook == XDP && !m.reachedByXDP(m.box.byIndex(r.Interface)):
		return reasonFor(reason.UpDevice)
	}
	return nil
}

// toGateway handles a packet for a chosen gateway that cannot be redirected at once. The
// stack does not route it: XDP leaves it to TCX, and there the kernel finds out the
// neighbour, or weir tells the sender. finish writes the packet as it leaves.
func (m *Model) toGateway(p *packet, r Route, obstacle reason.Reason, c *connection, d int, finish func()) Outcome {
	switch {
	case p.hook == XDP:
		p.scrubHeader(atUp)
		o := p.redirectLater(obstacle, c, d)
		o.Chosen = c == nil
		return o
	case obstacle == reason.UpTTL:
		return m.refuseLate(p, reason.GatewayTTL, 0)
	case obstacle == reason.UpMTU:
		return m.refuseLate(p, reason.GatewayMTU, r.MTU)
	}
	finish()
	p.scrubHeader(atHop)
	return Outcome{Verdict: Redirect, Reason: obstacle, Interface: r.Interface, Frame: p.frame, Asked: true}
}

// outToGateway sends what the box itself sends to a chosen gateway; the packet is as it
// leaves.
func (m *Model) outToGateway(p *packet, r Route, why reason.Reason) Outcome {
	if !r.Neighbour || m.box.byIndex(r.Interface).L3 || p.iface.L3 {
		return Outcome{Verdict: Redirect, Reason: why, Interface: r.Interface, Frame: p.frame, Asked: true}
	}
	copy(p.frame, r.Dst[:])
	copy(p.frame[6:], r.Src[:])
	if r.Interface == p.iface.Index {
		return p.out(why)
	}
	return Outcome{Verdict: Redirect, Reason: why, Interface: r.Interface, Frame: p.frame}
}

// refuseLate is refuseGateway for a packet that has passed the rules, as the log says. What
// they set of the mark is for the packet, and not for the answer.
func (m *Model) refuseLate(p *packet, why reason.Reason, mtu int) Outcome {
	p.mark = p.arrived
	o := m.refuseGateway(p, why, mtu)
	o.Late = true
	return o
}

// refuseGateway drops a packet that cannot go to its gateway, and tells its sender.
func (m *Model) refuseGateway(p *packet, why reason.Reason, mtu int) Outcome {
	if !m.mayAnswer(p) || p.isICMP() && !informs(p.family, p.icmpType) {
		return p.drop(why)
	}
	source := m.rejectSource(p)
	if !source.IsValid() {
		m.rejects.Not++
		return p.drop(why)
	}
	if !m.bucket.take(m.now) {
		m.rejects.Limit++
		return p.drop(why)
	}
	m.rejects.ICMP++
	kinds := map[reason.Reason][2][2]byte{ // type and code, by family
		reason.Gateway: {{3, 1}, {1, 0}}, reason.GatewayTTL: {{11, 0}, {3, 0}}, reason.GatewayMTU: {{3, 4}, {2, 0}},
	}
	kind := kinds[why][0]
	if p.family == 6 {
		kind = kinds[why][1]
	}
	header := []byte{kind[0], kind[1], 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint16(header[6:], uint16(mtu))
	return Outcome{Verdict: Reject, Reason: why, Interface: p.iface.Index, Frame: p.back(p.errorAbout(source, header))}
}
