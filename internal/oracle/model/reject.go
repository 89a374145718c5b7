package model

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// Limits of rejects (bpf/config.h, bpf/path/reject.h).
const (
	rejectRate  = 1000 // a second
	rejectBurst = 200  // at once
	rejectMax4  = 576  // bytes of an ICMP error
	rejectMax6  = 1280
	rejectTTL   = 64
	ethLeast    = 60 // least bytes of a frame that XDP sends
)

// A bucket holds the tokens for rejects.
type bucket struct {
	tokens uint32
	filled state.Tick
}

// take takes the token for one reject, if there is one.
func (b *bucket) take(now state.Tick) bool {
	ticks := uint64(uint32(now - b.filled))
	b.tokens = uint32(min(uint64(b.tokens)+ticks*rejectRate/state.TicksPerSecond, rejectBurst))
	b.filled = now
	if b.tokens == 0 {
		return false
	}
	b.tokens--
	return true
}

// Rejects counts the fate of blocked packets whose rule rejects.
type Rejects struct {
	RST, ICMP uint64
	Limit     uint64 // not rejected: over the rate
	Not       uint64 // not rejected: there is no address to send from
}

// Rejects returns the counts.
func (m *Model) Rejects() Rejects { return m.rejects }

// refuse ends a packet that did not pass its crossings. It is dropped, and if a rule blocked
// it, or would pass it and cannot, step 12 follows.
func (m *Model) refuse(p *packet, why reason.Reason, in, out *crossing) Outcome {
	m.countBlocked(&why, in, out, p)
	if why == reason.Gateway {
		return m.refuseGateway(p, why, 0)
	}
	rule := in.rule
	if !out.passes() || fails(why) && out.rule != nil {
		rule = out.rule
	}
	if why != reason.Block && !fails(why) || rule == nil || !m.isRejected(p, &rule.Answer) {
		return p.drop(why)
	}
	reset := p.tuple.Proto == protoTCP && rule.Answer.RST
	source := p.tuple.Dst
	if !reset {
		if source = m.rejectSource(p); !source.IsValid() {
			m.rejects.Not++
			return p.drop(why)
		}
	}
	if !m.bucket.take(m.now) {
		m.rejects.Limit++
		return p.drop(why)
	}
	o := Outcome{Verdict: Reject, Reason: why, Interface: p.iface.Index}
	if reset {
		m.rejects.RST++
		o.Frame = p.back(p.reset(rule.Answer.TTL))
	} else {
		m.rejects.ICMP++
		o.Frame = p.back(p.unreachable(source, &rule.Answer))
	}
	return o
}

// fails reports whether a packet was passed by its rules, but its state or its translation
// could not be made.
func fails(why reason.Reason) bool { return why >= reason.StateLimit && why <= reason.NATAddress }

// answerSegment ends a segment that does not fit its state. It is dropped. If nothing that
// fits has answered the SYN yet, its sender gets a reset: it holds another connection.
func (m *Model) answerSegment(p *packet, c *connection, d int) Outcome {
	s, t := &c.Flow[d], &c.Flow[1-d]
	const why = reason.StateMismatch
	if t.Peer != state.PeerSynSent || s.Peer > state.PeerSynSent || p.tcp.has(flagRST) || !m.mayAnswer(p) {
		return p.drop(why)
	}
	if !m.bucket.take(m.now) {
		m.rejects.Limit++
		return p.drop(why)
	}
	m.rejects.RST++
	return Outcome{Verdict: Reject, Reason: why, Interface: p.iface.Index, Frame: p.back(p.reset(0))}
}

// mayAnswer reports whether the packet's sender may be answered at all.
func (m *Model) mayAnswer(p *packet) bool {
	toGroup := p.l3 > 0 && (p.frame[0]|p.frame[6])&1 != 0
	return p.fragment != fragmentLater && !p.group && !toGroup && m.isHost(p.tuple.Src) && m.isHost(p.tuple.Dst)
}

// isRejected reports whether the rule rejects this packet.
func (m *Model) isRejected(p *packet, a *resolve.Answer) bool {
	switch {
	case !m.mayAnswer(p):
		return false
	case p.tuple.Proto == protoTCP && a.RST:
		return p.tcp.flags&flagRST == 0
	case p.isICMP() && !informs(p.family, p.icmpType):
		return false
	}
	return a.ICMP
}

// isHost reports whether an address belongs to a single host.
func (m *Model) isHost(a netip.Addr) bool {
	return !a.IsMulticast() && !a.IsUnspecified() && !m.box.broadcast(a) && !thisNetwork.Contains(a) && !reserved4.Contains(a)
}

// informs reports whether an ICMP message is neither an error nor a redirect.
func informs(family int, t uint8) bool {
	if family == 6 {
		return t >= 128 && t != 137
	}
	return slices.Contains([]uint8{0, 8, 9, 10, 13, 14, 15, 16, 17, 18}, t)
}

// rejectSource returns the address that an error about the packet comes from; an invalid
// one if the box has none of the family.
func (m *Model) rejectSource(p *packet) netip.Addr {
	if p.egress() || p.iface.Loopback || m.box.owns(p.tuple.Dst) {
		return p.tuple.Dst
	}
	local := p.family == 6 && p.tuple.Src.IsLinkLocalUnicast()
	from := []Interface{*p.iface}
	if !local {
		from = append(from, m.box.Interfaces...)
	}
	for _, i := range from {
		for _, a := range i.Addresses {
			own := a.Addr()
			if familyOf(own) == p.family && !own.IsLoopback() && (own.Is6() && own.IsLinkLocalUnicast()) == local {
				return own
			}
		}
	}
	return netip.Addr{}
}

// back puts an IP packet into a frame that goes back to the sender of this one.
func (p *packet) back(ip []byte) []byte {
	frame := slices.Clone(p.frame[:p.l3])
	if p.l3 > 0 {
		copy(frame, p.frame[6:12])
		copy(frame[6:], p.frame[:6])
	}
	frame = append(frame, ip...)
	if p.hook == XDP {
		// long enough without its tags, too
		frame = append(frame, make([]byte, max(0, ethLeast+p.l3-etherHeader-len(frame)))...)
	}
	return frame
}

// reset returns a TCP reset (RFC 9293, 3.5.2).
func (p *packet) reset(ttl uint8) []byte {
	if ttl == 0 {
		ttl = rejectTTL
	}
	tcp := make([]byte, 20)
	binary.BigEndian.PutUint16(tcp, p.tuple.DPort)
	binary.BigEndian.PutUint16(tcp[2:], p.tuple.SPort)
	tcp[12] = 5 << 4
	if p.tcp.flags&flagACK != 0 {
		binary.BigEndian.PutUint32(tcp[4:], p.tcp.ack)
		tcp[13] = flagRST
	} else {
		next := p.tcp.seq + uint32(p.tcp.payload)
		if p.tcp.flags&flagSYN != 0 {
			next++
		}
		if p.tcp.flags&flagFIN != 0 {
			next++
		}
		binary.BigEndian.PutUint32(tcp[8:], next)
		tcp[13] = flagRST | flagACK
	}
	sum := PseudoSum(p.tuple.Dst, p.tuple.Src, protoTCP, tcp)
	binary.BigEndian.PutUint16(tcp[16:], sum)
	return IPPacket(tcp, p.tuple.Dst, p.tuple.Src, protoTCP, 0, ttl)
}

// unreachable returns an ICMP error that quotes as much of the packet as fits.
func (p *packet) unreachable(from netip.Addr, a *resolve.Answer) []byte {
	if p.family == 4 {
		return p.errorAbout(from, []byte{3, a.Code, 0, 0, 0, 0, 0, 0})
	}
	return p.errorAbout(from, []byte{1, a.Code6, 0, 0, 0, 0, 0, 0})
}

// errorAbout returns an ICMP error with this header, without its checksum.
func (p *packet) errorAbout(from netip.Addr, header []byte) []byte {
	quoted := p.frame[p.l3:p.end]
	if p.family == 4 {
		icmp := append(header, quoted[:min(len(quoted), rejectMax4-28)]...)
		binary.BigEndian.PutUint16(icmp[2:], Sum(icmp))
		return IPPacket(icmp, from, p.tuple.Src, protoICMP, 0xc0, rejectTTL)
	}
	icmp := append(header, quoted[:min(len(quoted), rejectMax6-48)]...)
	binary.BigEndian.PutUint16(icmp[2:], PseudoSum(from, p.tuple.Src, protoICMPv6, icmp))
	return IPPacket(icmp, from, p.tuple.Src, protoICMPv6, 0, rejectTTL)
}

// PseudoSum returns the checksum of a payload with its pseudo header.
func PseudoSum(src, dst netip.Addr, proto uint8, payload []byte) uint16 {
	length := binary.BigEndian.AppendUint16(nil, uint16(len(payload)))
	return ^uint16(onesSum(src.AsSlice(), dst.AsSlice(), length, []byte{0, proto}, payload))
}

// IPPacket puts an IP header in front of a payload. IPv4 packets must not be
// fragmented, so they need no id.
func IPPacket(payload []byte, src, dst netip.Addr, proto, tos, ttl uint8) []byte {
	if src.Is6() {
		header := []byte{6<<4 | tos>>4, tos << 4, 0, 0, 0, 0, proto, ttl}
		binary.BigEndian.PutUint16(header[4:], uint16(len(payload)))
		return slices.Concat(header, src.AsSlice(), dst.AsSlice(), payload)
	}
	header := slices.Concat([]byte{4<<4 | 5, tos, 0, 0, 0, 0, 0x40, 0, ttl, proto, 0, 0}, src.AsSlice(), dst.AsSlice())
	binary.BigEndian.PutUint16(header[2:], uint16(20+len(payload)))
	binary.BigEndian.PutUint16(header[10:], Sum(header))
	return append(header, payload...)
}
