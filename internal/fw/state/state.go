package state

import (
	"net/netip"

	"weir/internal/fw/limits"
)

// TicksPerSecond is the resolution of the dataplane's clock (bpf/config.h).
const TicksPerSecond = limits.TicksPerSecond

// A Tick is a time of the dataplane's clock in units of 10 ms. It wraps. Compare ticks
// with Since, which works for spans of up to 248 days.
type Tick uint32

// Since returns the ticks from earlier to t. It is negative if earlier is later.
func (t Tick) Since(earlier Tick) int32 { return int32(t - earlier) }

// A State is one connection. Direction 0 is the direction of the packet that created it.
type State struct {
	Index    uint32   // index in the dataplane's array; unique among live states
	Tuple    [2]Tuple // tuple of arriving packets, by direction
	Phase    Phase
	Flags    Flags
	RuleIn   uint32 // global number of the rule that decided the in crossing, plus 1; 0: none
	RuleOut  uint32 // likewise for the out crossing
	Created  Tick
	Flow     [2]Flow
	Logs     [2][3]uint32 // Flags&Log: global numbers plus 1 of the rules that log all packets, for the in and the out crossing
	Queues   [2]uint16    // numbers from set queue, by direction; 0: none
	Mark     uint32       // Flags&Marked: bits of skb->mark that rules have set
	MarkMask [2]uint32    // the bits set by rules of the in and of the out crossing
	Scrub    [2]Scrub     // how its packets are normalised, by direction
	Normal   [2]Normal    // of scrub (reassemble tcp), by direction; Flow[0].Flags&FlowNormal
	NextHops [2]uint16    // index of the next hop, by direction; 0: none yet, 1: the box itself
	Bound    [2][2]uint16 // indices of the interfaces that the in and the out side are bound to, mostly the same twice; 0: none
}

// A Tuple identifies a connection by fields of a packet's headers. For ICMP queries the
// asking side's port is the id, and the other port is the request's type. Protocols
// without ports have 0.
type Tuple struct {
	Src, Dst     netip.Addr // IPv4 as IPv4, not mapped
	SPort, DPort uint16     // in host order
	Proto        uint8
	Zone         uint16 // the interface's index if an address is link-local, or zoneSocket; else 0
}

// zoneSocket is ZONE_SOCKET of bpf/packet/tuple.h: another connection of a socket has the
// same addresses and ports.
const zoneSocket = 0xffff

// Reverse returns the tuple of replies to t.
func (t Tuple) Reverse() Tuple {
	t.Src, t.Dst = t.Dst, t.Src
	t.SPort, t.DPort = t.DPort, t.SPort
	return t
}

// A Flow holds what was learnt from packets of one direction.
type Flow struct {
	Packets uint64
	Bytes   uint64 // of whole IP packets
	Last    Tick   // tick of the last packet
	SeqLo   uint32 // TCP: highest sequence number sent, plus 1
	SeqHi   uint32 // TCP: highest sequence number it may send, according to its own first packet
	Grant   uint32 // TCP: highest sequence number it allows the other end
	MaxWin  uint32 // TCP: largest window offered, in bytes
	WScale  uint8  // TCP: window scale, 0 to 14
	Peer    Peer
	Flags   FlowFlags
	Prio    Prio // set on its packets
}

// Last returns the tick of the last packet of either direction.
func (s *State) Last() Tick {
	if s.Flow[1].Last.Since(s.Flow[0].Last) > 0 {
		return s.Flow[1].Last
	}
	return s.Flow[0].Last
}

// Expires returns the ticks until the state expires with the timeouts in force. It is 0
// or less if the state has expired.
func (s *State) Expires(now Tick, timeouts *Timeouts) int64 {
	return int64(timeouts[s.Phase]) - int64(now.Since(s.Last()))
}

// Translated reports whether the two tuples are not mirror images.
func (s *State) Translated() bool { return s.Tuple[1] != s.Tuple[0].Reverse() }
