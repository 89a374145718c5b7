package model

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
)

// A quote is the quoted part of the packet that an ICMP error is about.
type quote struct {
	ip    ipPacket
	tuple state.Tuple
	seq   uint32 // TCP
}

// icmpErrorOf is step 7.
func (m *Model) icmpErrorOf(p *packet, made *state.State) Outcome {
	if why := m.sanity(p); why != nil {
		return p.drop(*why)
	}
	q, why := p.quoted()
	if why != nil {
		return p.drop(*why)
	}
	c, d, asSent := m.quotedConnection(p, q)
	if c == nil {
		return m.lookUp(p, made)
	}
	if m.isTooFast(c, d) {
		return p.drop(reason.MaxPktRate)
	}
	if q.tuple.Proto == protoTCP && !c.counted.sloppy && !sequenceFits(&c.Flow[1-d], &c.Flow[d], q.seq) {
		return p.drop(reason.ICMPMismatch)
	}
	if p.options && c.Flags&state.Options == 0 && !p.egress() {
		return p.drop(reason.Options)
	}
	p.carrier, p.direction, p.qos, p.scrub = c, d, c.qos[d], c.scrubOf(d)
	if !p.egress() {
		p.logSide(c, d, false, p.iface.Index, p.came)
	}
	if c.changesFamily() {
		if asSent {
			return p.drop(reason.AfTo) // the stack has not seen such a packet
		}
		return m.sendFamilyError(p, q, c, d)
	}
	if !asSent {
		p.rewriteError(q, c, d)
	}
	p.path = c.path
	if !p.egress() {
		p.marks, p.steered = c.routeMarkBits(d), c.routeMark(p.mark, d)
	}
	r := m.destination(p, c, d, c.leaving(d))
	if !p.egress() && r.up == nil && r.drop == nil && !c.fits(d, true, r.route.Interface) {
		return p.drop(reason.StateMismatch)
	}
	if leaves := slices.Clone(p.frame[p.l3:p.end]); p.egress() {
		p.logSide(c, d, true, p.iface.Index, leaves)
	} else if lost := r.drop != nil && *r.drop == reason.Gateway; r.up == nil && !p.group && !lost {
		p.logSide(c, d, true, r.route.Interface, leaves)
	}
	return m.stateless(p, r, reason.State)
}

// quotedConnection finds the connection of a quote and the direction in which the error goes.
// asSent: the quote is already as its sender sent it.
func (m *Model) quotedConnection(p *packet, q *quote) (c *connection, d int, asSent bool) {
	c, d = m.find(q.tuple.Reverse())
	if c == nil && p.egress() {
		c, d = m.find(q.tuple)
		d, asSent = 1-d, true
	}
	if c == nil && p.egress() {
		if up := m.quotedRecord(q); up != nil && !m.expired(up.c) {
			c, d, asSent = up.c, 1-up.d, false
		}
	}
	if c == nil || !c.mayCross(d, p.egress()) || !c.fits(d, p.egress(), p.iface.Index) {
		return nil, 0, false
	}
	return c, d, asSent
}

// quoted parses the packet behind the ICMP header.
func (p *packet) quoted() (*quote, *reason.Reason) {
	b := p.frame[p.l4+8 : p.end]
	q := &quote{ip: ipPacket{family: p.family}}
	l4, why := q.parseHeader(b)
	if why != nil {
		return nil, why
	}
	if len(b) < l4+8 {
		return nil, reasonFor(reason.Short)
	}
	if q.tuple.Src != p.tuple.Dst {
		return nil, reasonFor(reason.ICMPMismatch)
	}
	q.ip.header, q.ip.l4 = b[:l4], b[l4:]
	q.ip.proto = q.tuple.Proto
	q.tuple.Zone = p.tuple.Zone
	switch {
	case q.tuple.Proto == protoTCP:
		q.seq = binary.BigEndian.Uint32(q.ip.l4[4:])
		fallthrough
	case hasPorts(q.tuple.Proto):
		q.tuple.SPort = binary.BigEndian.Uint16(q.ip.l4)
		q.tuple.DPort = binary.BigEndian.Uint16(q.ip.l4[2:])
	case isICMP(p.family, q.tuple.Proto):
		q.tuple.SPort, q.tuple.DPort = icmpPorts(p.family, q.ip.l4)
	}
	return q, nil
}

// parseHeader returns the offset of the quoted L4 header.
func (q *quote) parseHeader(b []byte) (int, *reason.Reason) {
	if q.ip.family == 6 {
		return q.parseHeader6(b)
	}
	if len(b) < 20 {
		return 0, reasonFor(reason.Short)
	}
	header := int(b[0]&15) * 4
	if b[0]>>4 != 4 || header < 20 {
		return 0, reasonFor(reason.Malformed)
	}
	if binary.BigEndian.Uint16(b[6:])&0x1fff != 0 {
		return 0, reasonFor(reason.ICMPMismatch) // a later fragment
	}
	q.tuple = state.Tuple{
		Src: netip.AddrFrom4([4]byte(b[12:16])), Dst: netip.AddrFrom4([4]byte(b[16:20])), Proto: b[9],
	}
	return header, nil
}

// parseHeader6 walks the quoted chain, which was checked when it was sent.
func (q *quote) parseHeader6(b []byte) (int, *reason.Reason) {
	if len(b) < 40 {
		return 0, reasonFor(reason.Short)
	}
	if b[0]>>4 != 6 {
		return 0, reasonFor(reason.Malformed)
	}
	q.tuple = state.Tuple{
		Src: netip.AddrFrom16([16]byte(b[8:24])), Dst: netip.AddrFrom16([16]byte(b[24:40])), Proto: b[6],
	}
	at := 40
	for n := 0; n < maxExtensions && isExtension(q.tuple.Proto); n++ {
		if at-40 > maxExtensionBytes || len(b) < at+8 {
			return 0, reasonFor(reason.Short)
		}
		if q.tuple.Proto == nextFragment && binary.BigEndian.Uint16(b[at+2:])&^7 != 0 {
			return 0, reasonFor(reason.ICMPMismatch) // a later fragment
		}
		q.tuple.Proto, at = b[at], at+extensionSize(q.tuple.Proto, b[at+1])
	}
	return at, nil
}

// sequenceFits reports whether the sender s may have sent a quoted segment lately, by the
// windows that t offered.
func sequenceFits(s, t *state.Flow, seq uint32) bool {
	if s.Flags&state.FlowSeen == 0 {
		return false
	}
	low := s.SeqLo - max(t.MaxWin, 1) - maxAck
	return !before(seq, low) && !after(seq, s.SeqLo+maxAck)
}

// rewriteError turns the quoted packet into what its sender sent, and sends the error to
// that sender. The error keeps its source, unless the quoted packet's destination sent
// it: that has another address there.
func (p *packet) rewriteError(q *quote, c *connection, d int) {
	leaves := p.tuple
	leaves.Dst = c.leaving(d).Dst
	if p.tuple.Src == q.tuple.Dst {
		leaves.Src = c.leaving(d).Src
	}
	keep(func() { q.ip.write(c.Tuple[1-d]) }, p.ip().l4Sum())
	p.ip().write(leaves)
	p.tuple = leaves
}
