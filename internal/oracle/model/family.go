package model

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
)

// Lengths of headers.
const (
	header4, header6, fragmentHeader = 20, 40, 8
)

// cutLength is the longest IPv4 packet that may be cut on the way: with IPv6's header it has
// the least MTU of IPv6 (RFC 7915, 5.1).
const cutLength = 1260

// leastMTU6 is the least MTU of IPv6.
const leastMTU6 = 1280

// changesFamily reports whether a connection's tuples are of two address families.
func (c *connection) changesFamily() bool { return c.Tuple[0].Dst.Is4() != c.Tuple[1].Src.Is4() }

// familyRefused returns why a packet that af-to translates makes no state, or nil.
func (m *Model) familyRefused(p *packet, inside state.Tuple, fresh bool) *reason.Reason {
	switch {
	case !fresh || p.group || p.tuple.Dst.IsMulticast() || p.tuple.Zone != 0 || !p.makesState() || !p.corresponds() || p.isICMP() && !p.hasPortToChoose():
		return reasonFor(reason.AfTo)
	case !p.isPlain():
		return reasonFor(reason.Options)
	case m.isMartian(inside.Dst):
		return reasonFor(reason.MartianDest)
	}
	return nil
}

// corresponds reports whether the other family has such packets.
func (p *packet) corresponds() bool {
	switch {
	case p.isICMP():
		return p.fragment == fragmentNone && changedType(10-p.family, p.icmpType) != p.icmpType
	case p.tuple.Proto == protoICMP, p.tuple.Proto == protoICMPv6, p.tuple.Proto == protoIGMP:
		return false
	}
	return !isExtension(p.tuple.Proto)
}

// isPlain reports whether there is nothing between the IP header and the L4 header, except
// for a fragment header.
func (p *packet) isPlain() bool {
	if p.family == 4 {
		return p.l4-p.l3 == header4
	}
	atomicOrNot := p.frame[p.l3+6] == nextFragment
	return p.l4-p.l3 == header6 || atomicOrNot && p.l4-p.l3 == header6+fragmentHeader
}

// isMartian reports whether nothing can be forwarded to an address.
func (m *Model) isMartian(a netip.Addr) bool {
	if a.Is4() {
		first := a.As4()[0]
		return m.box.owns(a) || m.box.broadcast(a) || first == 0 || first == 127 || first >= 224
	}
	return m.box.owns(a) || a.IsMulticast() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsLoopback()
}

// familyFirst returns where a packet goes in its new family, and why it makes no state if that
// fails: only if the rules have chosen its gateway.
func (m *Model) familyFirst(p *packet, in *crossing, inside state.Tuple) (r routed, why *reason.Reason) {
	switch h := in.routesTo(); {
	case h != nil:
		r = m.toHop(h.toward(inside.Dst))
	case in.rtable != 0:
		r = m.byTable(inside.Dst, in.rtable)
	default:
		return m.familyRoute(inside.Dst, in.mark.On(p.mark)), nil
	}
	return r, r.drop
}

// familyWay returns where packets of a connection go in the family in which they leave. A side
// where they leave is bound to the first interface, if that where they come in is bound.
func (m *Model) familyWay(p *packet, c *connection, d int) routed {
	var r routed
	if c.chosen[d] != nil {
		r = m.toHop(c.chosen[d])
	} else {
		r = m.familyRoute(c.leaving(d).Dst, c.routeMark(p.mark, d))
	}
	if at := uint16(r.route.Interface); d == 0 && r.drop == nil && c.Bound[0][0] != 0 && c.Bound[1][0] == 0 {
		c.Bound[1] = [2]uint16{at, at}
	}
	return r
}

func (m *Model) familyRoute(dst netip.Addr, mark uint32) routed {
	route := m.box.route(dst, mark)
	switch {
	case m.isMartian(dst):
		return routed{drop: reasonFor(reason.MartianDest)}
	case route.Kind != RouteForward:
		return routed{drop: reasonFor(reason.Gateway)}
	}
	return m.open(routed{route: route})
}

// sendFamily sends a tracked packet of a connection with two address families. follows: its
// first fragment is remembered already, if it is one.
func (m *Model) sendFamily(p *packet, c *connection, d int, why reason.Reason, follows bool) Outcome {
	if p.egress() {
		return p.drop(reason.AfTo)
	}
	fresh := p.crossed[0] != nil
	p.carrier, p.direction = c, d
	r := m.familyWay(p, c, d)
	if r.drop == nil && !follows {
		if why := m.remember(p, c, d); why != nil {
			return p.drop(*why)
		}
	}
	if !fresh && p.anew[0] == nil && (d == 0 || r.drop == nil) {
		iface := p.iface.Index
		if d == 1 {
			iface = r.route.Interface
		}
		p.logSide(c, d, d == 1, iface, p.came)
	}
	if met := p.anew[0]; met != nil { // they let it join its connection, which is bound elsewhere
		fate := p.pass(why)
		if r.drop != nil {
			fate = p.drop(*r.drop)
		}
		m.logEvaluated(p, met, &crossing{}, &fate)
	}
	if r.drop != nil {
		return m.familyFault(p, *r.drop, 0)
	}
	m.countPath(c.path, d, p)
	p.normalise(c.scrubBetween(d, p.crossed[0], p.crossed[1]))
	p.moveStamps(c, d)
	if fault, told := p.fault(r.route.MTU); fault != nil {
		return m.familyFault(p, *fault, told)
	}
	p.qos = c.qos[d]
	if o := m.familyObstacle(p, c, d, r); o != nil && p.hook == XDP {
		return p.redirectLater(*o, c, d)
	}
	return m.leaveFamily(p, c, d, r, why)
}

// familyFault drops a packet. Its sender is told of some reasons.
func (m *Model) familyFault(p *packet, why reason.Reason, mtu int) Outcome {
	switch why {
	case reason.Gateway, reason.GatewayTTL, reason.GatewayMTU:
		p.mark = p.arrived
		return m.refuseGateway(p, why, mtu)
	}
	return p.drop(why)
}

// fault returns why a packet goes no further, or nil, and the MTU that its sender is told.
func (p *packet) fault(mtu int) (why *reason.Reason, told int) {
	more := p.longer()
	switch {
	case !p.isPlain():
		return reasonFor(reason.Options), 0
	case p.group:
		return reasonFor(reason.AfTo), 0
	case p.ttl <= 1:
		return reasonFor(reason.GatewayTTL), 0
	case p.length()+more <= mtu:
		return nil, 0
	case p.family == 6:
		return reasonFor(reason.GatewayMTU), max(mtu-more, leastMTU6)
	}
	return reasonFor(reason.GatewayMTU), mtu - more
}

// longer returns by how much a packet gets longer.
func (p *packet) longer() int {
	after := header4
	if p.family == 4 {
		after = header6
		if p.fragment != fragmentNone {
			after += fragmentHeader
		}
	}
	return after - (p.l4 - p.l3)
}

// familyObstacle returns why a packet cannot be redirected at once, or nil.
func (m *Model) familyObstacle(p *packet, c *connection, d int, r routed) *reason.Reason {
	switch {
	case m.box.MarkBlind && c.routeMark(p.mark, d) != 0 && r.chosen == nil:
		return reasonFor(reason.UpMark)
	case !r.route.Neighbour:
		return reasonFor(reason.UpNeighbour)
	case p.hook == XDP && !m.reachedByXDP(m.box.byIndex(r.route.Interface)):
		return reasonFor(reason.UpDevice)
	}
	return nil
}

// leaveFamily translates a packet and redirects it.
func (m *Model) leaveFamily(p *packet, c *connection, d int, r routed, why reason.Reason) Outcome {
	if p.family == 4 && p.tuple.Proto == protoUDP && p.fragment == fragmentFirst && binary.BigEndian.Uint16(p.frame[p.l4+6:]) == 0 {
		return p.drop(reason.AfTo) // IPv6 needs a checksum, which covers what is not here
	}
	return m.redirectFamily(p, p.inOtherFamily(c.leaving(d)), c, d, r, why)
}

// redirectFamily redirects a packet that has become another one.
func (m *Model) redirectFamily(p, to *packet, c *connection, d int, r routed, why reason.Reason) Outcome {
	obstacle := m.familyObstacle(p, c, d, r)
	p.mark = m.marks().Set(c.markOn(p.mark), MarkLeaves)
	if obstacle != nil {
		return Outcome{Verdict: Redirect, Reason: *obstacle, Interface: r.route.Interface, Frame: to.frame, Asked: true}
	}
	return m.redirectFrame(to, r.route, why, len(p.frame))
}

// inOtherFamily returns the packet in its other family, with another tuple.
func (p *packet) inOtherFamily(t state.Tuple) *packet {
	q := *p
	q.family, q.tuple = 10-p.family, t
	l4 := slices.Clone(p.frame[p.l4:p.end])
	var header []byte
	if q.family == 6 {
		header = p.header6(t, len(l4))
	} else {
		header = p.header4(t, len(l4))
	}
	q.frame = p.front(q.family, header, l4, p.frame[p.end:])
	q.l4 = q.l3 + len(header)
	q.end = q.l4 + len(l4)
	if p.fragment != fragmentLater {
		p.changeL4(&q, t)
	}
	return &q
}

// front puts something behind the packet's Ethernet header, which gets the type of a family.
func (p *packet) front(family int, rest ...[]byte) []byte {
	front := slices.Clone(p.frame[:p.l3])
	if len(front) > 0 {
		put16(front[len(front)-2:], map[int]uint16{4: 0x0800, 6: 0x86dd}[family])
	}
	return slices.Concat(append([][]byte{front}, rest...)...)
}

// changeL4 writes the ports of the new tuple, and a checksum that is as right as before.
func (p *packet) changeL4(q *packet, t state.Tuple) {
	before, after := p.ip(), q.ip()
	sum, now := before.l4Sum(), after.l4Sum()
	if sum == nil || now == nil {
		return
	}
	total := onesSum(append(sum.covers(), pseudoOf(before))...)
	if sum.udp && q.family == 6 && sum.field[0] == 0 && sum.field[1] == 0 {
		total, now.udp = 0xffff, false // there was none
	}
	if p.isICMP() {
		after.l4[0] = changedType(q.family, p.icmpType)
	}
	after.writePorts(t)
	covers := now.covers
	now.covers = func() [][]byte { return append(covers(), pseudoOf(after)) }
	now.total = total
	now.restore()
	if after.proto == protoUDP && now.field[0] == 0 && now.field[1] == 0 && !now.udp {
		put16(now.field, 0xffff)
	}
}

// pseudoOf returns what a checksum covers of a pseudo header, besides the addresses: for
// those protocols alone that have one in one family only.
func pseudoOf(ip *ipPacket) []byte {
	if ip.family == 4 && ip.proto == protoICMP {
		return nil
	}
	return binary.BigEndian.AppendUint16([]byte{0, ip.proto}, uint16(len(ip.l4)))
}

// tosByte returns the type of service, or the traffic class, with the bits of congestion.
func (p *packet) tosByte() byte {
	b := p.frame[p.l3:]
	tos := b[1]
	if p.family == 6 {
		tos = b[0]<<4 | b[1]>>4
	}
	if t := p.scrub.tos; t.Given {
		tos = tos&3 | t.N&^3
	}
	return tos
}

// header4 returns the IPv4 header of an IPv6 packet with so many bytes behind it.
func (p *packet) header4(t state.Tuple, rest int) []byte {
	length := header4 + rest
	b := make([]byte, header4)
	b[0], b[1] = 0x45, p.tosByte()
	put16(b[2:], uint16(length))
	cut := length <= cutLength || p.scrub.noDF
	switch {
	case p.fragment != fragmentNone:
		field := uint16(p.fragmentOffset / 8)
		if p.more {
			field |= 0x2000
		}
		put16(b[4:], uint16(p.fragmentID))
		put16(b[6:], field)
	case cut || p.scrub.randomID:
		put16(b[4:], p.newID)
		fallthrough
	default:
		if !cut {
			put16(b[6:], 0x4000)
		}
	}
	b[8], b[9] = p.scrub.ttlAfter(p.frame[p.l3+7], atHop), t.Proto
	copy(b[12:], t.Src.AsSlice())
	copy(b[16:], t.Dst.AsSlice())
	put16(b[10:], Sum(b))
	return b
}

// header6 returns the IPv6 header of an IPv4 packet.
func (p *packet) header6(t state.Tuple, rest int) []byte {
	b := make([]byte, header6)
	tos := p.tosByte()
	b[0], b[1] = 0x60|tos>>4, tos<<4
	b[6], b[7] = t.Proto, p.scrub.ttlAfter(p.frame[p.l3+8], atHop)
	copy(b[8:], t.Src.AsSlice())
	copy(b[24:], t.Dst.AsSlice())
	if p.fragment != fragmentNone {
		f := make([]byte, fragmentHeader)
		f[0], b[6] = t.Proto, nextFragment
		field := uint16(p.fragmentOffset)
		if p.more {
			field |= 1
		}
		put16(f[2:], field)
		put16(f[6:], uint16(p.fragmentID))
		b = append(b, f...)
	}
	put16(b[4:], uint16(len(b)-header6+rest))
	return b
}
