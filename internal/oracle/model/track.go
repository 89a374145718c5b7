package model

import (
	"weir/internal/fw/state"
)

// maxAck is the tolerance of the acknowledgement tests: a full unscaled window and a
// segment.
const maxAck = 65535 + 1500

// The result of tracking a packet of a state.
type tracked uint8

const (
	goesOn   tracked = iota
	over             // the connection is over and this packet opens another
	mismatch         // does not fit; nothing was changed
	badStamp         // neither do its timestamps
	refused          // its source has too many connections: the state ends
)

// track is step 9.
func (m *Model) track(p *packet, c *connection, d int) tracked {
	result := goesOn
	switch {
	case p.tuple.Proto == protoTCP:
		result = m.trackTCP(p, c, d)
	case p.isICMP():
		c.Phase = state.ICMPError
	default:
		trackOther(c, d)
	}
	if result == goesOn {
		m.count(p, c, d)
	}
	return result
}

func (m *Model) count(p *packet, c *connection, d int) {
	f := &c.Flow[d]
	f.Last = m.now
	f.Packets++
	f.Bytes += uint64(p.length())
	m.countInState(p, c, d)
}

// trackOther tracks UDP and every protocol that weir does not know.
func trackOther(c *connection, d int) {
	f, t := &c.Flow[d], &c.Flow[1-d]
	raise(f, state.PeerSynSent)
	if t.Peer == state.PeerSynSent {
		t.Peer = state.PeerEstablished
	}
	single, multiple := state.OtherSingle, state.OtherMultiple
	if c.Tuple[0].Proto == protoUDP {
		single, multiple = state.UDPSingle, state.UDPMultiple
	}
	c.Phase = single
	if f.Peer == state.PeerEstablished && t.Peer == state.PeerEstablished {
		c.Phase = multiple
	}
}

func raise(f *state.Flow, to state.Peer) {
	if f.Peer < to {
		f.Peer = to
	}
}

// Sequence numbers are compared modulo 2³² (RFC 9293, 3.4).
func before(a, b uint32) bool { return int32(a-b) < 0 }
func after(a, b uint32) bool  { return int32(a-b) > 0 }

// sequenceEnd returns the number behind a segment: SYN and FIN take one each.
func sequenceEnd(g *segment) uint32 {
	end := g.seq + uint32(g.payload)
	if g.flags&flagSYN != 0 {
		end++
	}
	if g.flags&flagFIN != 0 {
		end++
	}
	return end
}

// startTCP creates a flow from a segment.
func startTCP(f *state.Flow, p *packet) {
	g := &p.tcp
	f.SeqLo = sequenceEnd(g)
	f.SeqHi = f.SeqLo
	f.MaxWin = max(g.window, 1)
	f.Flags = state.FlowSeen
	takeScale(f, p)
	if g.flags&flagFIN != 0 {
		f.Peer = state.PeerClosing
	}
	if g.flags&flagACK != 0 {
		f.Grant = g.ack + f.MaxWin
		f.Flags |= state.FlowGranted
	}
}

// takeScale takes the window scale that a SYN offers (RFC 7323, 2).
func takeScale(f *state.Flow, p *packet) {
	if scale, offered := windowScale(p); offered {
		f.WScale = scale
		f.Flags |= state.FlowScaled
	}
}

// windowScale reads a SYN's options; malformed ones offer none.
func windowScale(p *packet) (scale uint8, offered bool) {
	if p.tcp.flags&flagSYN == 0 {
		return 0, false
	}
	options := p.frame[p.l4+20 : p.l4+p.tcp.header]
	for len(options) > 0 {
		switch kind := options[0]; {
		case kind == 0:
			return 0, false
		case kind == 1:
			options = options[1:]
		case len(options) < 2 || options[1] < 2 || int(options[1]) > len(options):
			return 0, false
		case kind == 3 && options[1] == 3:
			return min(options[2], 14), true
		default:
			options = options[options[1]:]
		}
	}
	return 0, false
}

// trackTCP tracks a later segment of a connection; the numbers are those of step 9.
func (m *Model) trackTCP(p *packet, c *connection, d int) tracked {
	s, t := &c.Flow[d], &c.Flow[1-d]
	if p.tcp.flags&(flagSYN|flagACK) == flagSYN { // 1
		switch {
		case s.Peer >= state.PeerFinWait2 && t.Peer >= state.PeerFinWait2:
			return over
		case s.Peer >= state.PeerEstablished && t.Peer >= state.PeerEstablished:
			return goesOn
		}
	}
	if !m.fitsNormal(p, c, d) {
		return badStamp
	}
	result := m.trackSegment(p, c, d)
	if result == goesOn && c.isNormal() {
		m.followNormal(p, c, d)
	}
	return result
}

func (m *Model) trackSegment(p *packet, c *connection, d int) tracked {
	if c.counted.sloppy {
		return m.trackSloppy(p, c, d)
	}
	s, t := &c.Flow[d], &c.Flow[1-d]
	g := newTrial(p, t) // 2
	if s.Flags&state.FlowSeen == 0 {
		if !g.ackFits(t, scaleOf(s, t)) {
			return mismatch
		}
		firstOf(s, t, p) // 3
	}
	g.place(s, t)
	inWindow := g.inWindow(s, t) // 4
	if !inWindow && !g.loose(s, t) {
		return mismatch // 5
	}
	if inWindow && g.flags&flagACK != 0 && t.Peer == state.PeerSynSent && s.Peer >= state.PeerEstablished {
		if why := m.connect(c.counted); why != nil {
			c.refused = *why
			return refused
		}
	}
	g.update(s, t, inWindow) // 6
	c.Phase = tcpPhase(s.Peer, t.Peer)
	return goesOn
}

// firstOf handles this end's first segment: a SYN, or what follows one that was not seen.
func firstOf(s, t *state.Flow, p *packet) {
	s.SeqLo = p.tcp.seq
	s.SeqHi = sequenceEnd(&p.tcp) + t.MaxWin
	s.Flags |= state.FlowSeen
	takeScale(s, p)
	raise(s, state.PeerSynSent)
}

// A trial is a segment relative to its state.
type trial struct {
	flags    uint8
	original uint32 // sequence number as sent
	seq, end uint32
	ack      uint32
	hasAck   bool
	window   uint32 // scaled, once placed
	scale    uint8
}

func newTrial(p *packet, t *state.Flow) *trial {
	g := &trial{
		flags: p.tcp.flags, original: p.tcp.seq, seq: p.tcp.seq, end: sequenceEnd(&p.tcp),
		ack: p.tcp.ack, window: p.tcp.window,
	}
	g.hasAck = g.flags&flagACK != 0 && !(g.flags&flagRST != 0 && g.ack == 0)
	if !g.hasAck {
		g.ack = t.SeqLo
	}
	return g
}

// place scales the window. A segment without data gets its sender's position.
func (g *trial) place(s, t *state.Flow) {
	g.scale = scaleOf(s, t)
	if g.flags&flagSYN == 0 {
		g.window <<= g.scale
	}
	if g.seq == g.end {
		g.seq, g.end = s.SeqLo, s.SeqLo
	}
}

// scaleOf returns the scale of this end's windows: both ends must have offered one.
func scaleOf(s, t *state.Flow) uint8 {
	if s.Flags&t.Flags&state.FlowScaled == 0 {
		return 0
	}
	return s.WScale
}

func (g *trial) ackFits(t *state.Flow, scale uint8) bool {
	skew := int64(int32(t.SeqLo - g.ack))
	return t.Flags&state.FlowSeen == 0 || skew >= -maxAck && skew <= maxAck<<scale
}

// resetFits reports whether a RST fits: only at the very edge of what its end has sent.
func (g *trial) resetFits(s *state.Flow) bool {
	edge := int32(g.original - s.SeqLo)
	return g.flags&flagRST == 0 || edge >= -1 && edge <= 1
}

// limit returns the highest sequence number that this end may send.
func limit(s, t *state.Flow) uint32 {
	if t.Flags&state.FlowGranted != 0 && after(t.Grant, s.SeqHi) {
		return t.Grant
	}
	return s.SeqHi
}

func (g *trial) inWindow(s, t *state.Flow) bool {
	return !after(g.end, limit(s, t)) && !before(g.seq, s.SeqLo-t.MaxWin) &&
		g.ackFits(t, g.scale) && g.resetFits(s)
}

// loose reports whether the loose tests apply: the other end has not been seen, or the
// connection is closing.
func (g *trial) loose(s, t *state.Flow) bool {
	may := t.Flags&state.FlowSeen == 0 || t.Peer >= state.PeerFinWait2 || s.Peer >= state.PeerFinWait2
	return may && !after(g.end, limit(s, t)+maxAck) && !before(g.seq, s.SeqLo-maxAck) && g.resetFits(s)
}

func (g *trial) update(s, t *state.Flow, inWindow bool) {
	s.MaxWin = max(s.MaxWin, g.window)
	if after(g.end, s.SeqLo) {
		s.SeqLo = g.end
	}
	if after(s.SeqLo, s.SeqHi) {
		s.SeqHi = s.SeqLo // else it would be in the future again 2 GiB later
	}
	if grant := g.ack + max(g.window, 1); g.hasAck && (s.Flags&state.FlowGranted == 0 || after(grant, s.Grant)) {
		s.Grant = grant
		s.Flags |= state.FlowGranted
	}
	if g.flags&flagFIN != 0 {
		raise(s, state.PeerClosing)
	}
	if inWindow && g.flags&flagSYN != 0 {
		raise(s, state.PeerSynSent)
	}
	if inWindow && g.flags&flagACK != 0 {
		g.acknowledge(t)
	}
	if g.flags&flagRST != 0 {
		s.Peer, t.Peer = state.PeerTimeWait, state.PeerTimeWait
	}
}

// acknowledge advances the other end, whose SYN or FIN has arrived.
func (g *trial) acknowledge(t *state.Flow) {
	switch {
	case t.Peer == state.PeerSynSent:
		t.Peer = state.PeerEstablished
	case t.Peer == state.PeerClosing && !before(g.ack, t.SeqLo):
		t.Peer = state.PeerFinWait2
	}
}

func tcpPhase(a, b state.Peer) state.Phase {
	low, high := min(a, b), max(a, b)
	switch {
	case low >= state.PeerFinWait2:
		return state.TCPClosed
	case low >= state.PeerClosing:
		return state.TCPFinWait
	case low < state.PeerEstablished:
		return state.TCPOpening
	case high >= state.PeerClosing:
		return state.TCPClosing
	}
	return state.TCPEstablished
}
