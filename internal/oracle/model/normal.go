package model

import (
	"encoding/binary"

	"weir/internal/fw/state"
)

// stamps are the timestamps of a segment (RFC 7323, 3).
type stamps struct {
	at          int // of the value in the frame; the echo is behind it
	count       int // how many options have timestamps
	value, echo uint32
}

// readStamps reads a segment's options up to the first malformed one.
func (p *packet) readStamps() (s stamps) {
	options := p.frame[p.l4+20 : p.l4+p.tcp.header]
	for at := 0; at < len(options) && options[at] != 0; {
		size := 1
		if options[at] != 1 {
			if at+1 >= len(options) || options[at+1] < 2 || at+int(options[at+1]) > len(options) {
				break
			}
			size = int(options[at+1])
			if options[at] == 8 && size == 10 {
				s.at = p.l4 + 20 + at + 2
				s.count++
			}
		}
		at += size
	}
	if s.count == 1 {
		s.value, s.echo = binary.BigEndian.Uint32(p.frame[s.at:]), binary.BigEndian.Uint32(p.frame[s.at+4:])
	}
	return s
}

// isNormal reports whether scrub (reassemble tcp) has passed the connection.
func (c *connection) isNormal() bool { return c.Flow[0].Flags&state.FlowNormal != 0 }

// asksNormal reports whether the rules of a crossing ask for it.
func (c *crossing) asksNormal() bool { return c.scrub.ReassembleTCP || c.listed.ReassembleTCP }

// keepNormal gives a new connection what scrub (reassemble tcp) needs, if a side with state asks
// for it. replies says what FreeBSD's list asks for replies at the in and the out side. The
// offsets are those that the dataplane has drawn.
func (m *Model) keepNormal(p *packet, c *connection, in, out *crossing, replies [2]bool, made *state.State) {
	if p.tuple.Proto != protoTCP || c.counted.sloppy || p.iface.Loopback {
		return
	}
	n := [2]state.Normal{}
	for side, here := range []*crossing{in, out} {
		forth, back := state.NormalEnters, state.NormalLeaves
		if side == 1 {
			forth, back = back, forth
		}
		if !here.due || c.Flags&(state.EvaluateIn<<side) != 0 {
			continue
		}
		if here.asksNormal() {
			n[0].Flags |= forth
		}
		if here.asksNormal() || replies[side] {
			n[1].Flags |= back
		}
	}
	if n[0].Flags|n[1].Flags == 0 {
		return
	}
	for d := range n {
		if made != nil {
			n[d].Offset = made.Normal[d].Offset
		}
		c.Scrub[d].ReassembleTCP = n[d].Flags != 0
	}
	c.Normal = n
	c.Flow[0].Flags |= state.FlowNormal
	c.Flags |= state.Log
	m.followNormal(p, c, 0)
}

// The clock of timestamps has at most 1,000 ticks a second, and pf allows 10 % more.
const stampRate = 1100 / state.TicksPerSecond

// Beyond, timestamps may have wrapped.
const (
	mostIdle = 24 * 24 * 60 * 60 * state.TicksPerSecond
	mostAge  = 12 * 24 * 60 * 60 * state.TicksPerSecond
)

// fitsNormal reports whether the timestamps of a segment fit its connection.
func (m *Model) fitsNormal(p *packet, c *connection, d int) bool {
	if !c.isNormal() {
		return true
	}
	own, other, s := &c.Normal[d], &c.Normal[1-d], p.readStamps()
	if s.count > 1 {
		return false
	}
	if own.Flags&state.NormalChecked != 0 && uint32(m.now-c.Created) > mostAge {
		own.Flags = own.Flags&^state.NormalChecked | state.NormalIdled
	}
	for _, n := range []*state.Normal{own, other} {
		if n.Flags&state.NormalChecked != 0 && uint32(m.now-n.Seen) > mostIdle {
			n.Flags = n.Flags&^state.NormalChecked | state.NormalIdled
		}
	}
	switch {
	case own.Flags&other.Flags&state.NormalChecked == 0:
		return true
	case s.count == 0:
		return p.tcp.has(flagRST) || p.tcp.payload == 0 || own.Flags&state.NormalDataStamped == 0
	case min(c.Flow[0].Peer, c.Flow[1].Peer) < state.PeerEstablished:
		return true
	}
	drift := min((uint64(m.now-own.Seen)+uint64(m.rules.Options.Timeouts.TCPTSDiff)*state.TicksPerSecond)*stampRate, 1<<31-1)
	if before(s.value, other.Echo) || after(s.value, own.Value+uint32(drift)) {
		return false // it was answered long ago, or comes from the future
	}
	echo := sentBy(other, s.echo)
	return echo == 0 || !after(echo, other.Value) && !before(echo, other.First)
}

// sentBy returns an echo as the end has sent it that n is about.
func sentBy(n *state.Normal, echo uint32) uint32 {
	if echo == 0 || n.Flags&state.NormalStamped == 0 {
		return echo
	}
	return echo - n.Offset
}

// followNormal notes what a segment has that fits its connection.
func (m *Model) followNormal(p *packet, c *connection, d int) {
	own, s := &c.Normal[d], p.readStamps()
	if own.Flags&(state.NormalEnters|state.NormalLeaves) == 0 {
		return
	}
	if own.Flags&state.NormalBegun == 0 {
		own.Flags |= state.NormalBegun
		if p.tcp.has(flagSYN) && s.count == 1 {
			own.Flags |= state.NormalStamped
			own.First = s.value
		}
	}
	ttl := p.ttl
	if own.Flags&state.NormalEnters == 0 && !p.egress() && ttl > 0 {
		ttl-- // as it leaves
	}
	own.TTL = max(own.TTL, ttl)
	if own.Flags&state.NormalStamped == 0 {
		return
	}
	if p.tcp.payload > 0 && own.Flags&(state.NormalDataStamped|state.NormalDataBare) == 0 {
		own.Flags |= state.NormalDataBare
		if s.count > 0 {
			own.Flags ^= state.NormalDataBare | state.NormalDataStamped
		}
	}
	if s.count == 1 && own.Flags&state.NormalIdled == 0 {
		m.noteStamp(own, s.value, sentBy(&c.Normal[1-d], s.echo))
	}
}

// noteStamp notes timestamps; echo is as the other end has sent it.
func (m *Model) noteStamp(own *state.Normal, value, echo uint32) {
	learns := own.Flags&state.NormalChecked == 0
	own.Seen = m.now
	if learns || !before(value, own.Value) {
		own.Value = value
	}
	if echo == 0 {
		return
	}
	if learns || !before(echo, own.Echo) {
		own.Echo = echo
	}
	if learns && (before(value, own.First) || own.First == 0) {
		own.First = value
	}
	own.Flags |= state.NormalChecked
}

// raise adds the largest TTL of the direction to how its packets are normalised.
func (c *connection) raise(d int, s scrub) scrub {
	switch n := &c.Normal[d]; {
	case n.Flags&state.NormalEnters != 0:
		s.enters = max(s.enters, n.TTL)
	case n.Flags&state.NormalLeaves != 0:
		s.leaves = max(s.leaves, n.TTL)
	}
	return s
}

// moveStamps gives a segment's timestamps the offsets of its connection.
func (p *packet) moveStamps(c *connection, d int) {
	if !c.isNormal() || p.tuple.Proto != protoTCP || p.fragment == fragmentLater {
		return
	}
	s := p.readStamps()
	if s.count != 1 {
		return
	}
	value := s.value
	if value != 0 && c.Normal[d].Flags&state.NormalStamped != 0 {
		value += c.Normal[d].Offset
	}
	keep(func() {
		binary.BigEndian.PutUint32(p.frame[s.at:], value)
		binary.BigEndian.PutUint32(p.frame[s.at+4:], sentBy(&c.Normal[1-d], s.echo))
	}, p.ip().l4Sum())
}
