package ast

import "weir/pf/token"

// Filter has clauses of a rule that follow its addresses in any order. A missing clause
// is nil or zero.
type Filter struct {
	ReceivedOn    *Interface
	TOS           *Count // the packet's TOS; 0: no condition
	DSCP          *Count // the upper six bits of the packet's TOS
	Prio          *Count // the packet's priority
	Marked        *Mark  // the packet's mark
	MaxPktRate    *Rate
	MaxPktSize    *Count // bytes of the IP packet
	Set           Set
	StateLimiter  *Limiter
	SourceLimiter *Limiter
	Fragment      token.Span // of the word
	Probability   *Count     // in parts of 2^32
	Once          token.Span // of the word
	RTable        *Count
	Divert        *Divert
	Scrub         *Scrub
}

// Count is a number in a clause.
type Count struct {
	token.Span
	N uint32
}

// Rate is a number of packets in a number of seconds.
type Rate struct {
	token.Span
	N, Seconds uint32
}

// Set is what "set" changes in matching packets.
type Set struct {
	Prio  *SetPrio
	Queue *SetQueue
	TOS   *Count
	Delay *Count // milliseconds
	Mark  *Mark
}

// Mark is a condition on a packet's mark, or the change that set mark makes: N in the
// bits of Mask. pf has no marks.
type Mark struct {
	token.Span
	Not  bool // ! marked
	N    uint32
	Mask uint32 // 0: not given
}

// SetPrio has priorities for packets, and for those without data: acknowledgements and
// packets that request a low delay.
type SetPrio struct {
	token.Span
	N, Ack uint32
}

// SetQueue names the queues for packets, and for those without data.
type SetQueue struct {
	token.Span
	Name Word
	Ack  *Word // nil: the same
}

// Limiter is the use of a state limiter or a source limiter.
type Limiter struct {
	token.Span
	Name  Word
	ByID  bool // Name is the limiter's number
	Block bool // (block): packets above the limit are dropped; otherwise the rule does not match them
}

// DivertKind is a kind of diversion.
type DivertKind uint8

// Kinds of diversion.
const (
	DivertTo     DivertKind = iota // divert-to: a socket of this machine
	DivertReply                    // divert-reply: the socket bound to the connection's address
	DivertPacket                   // divert-packet: a program that receives and sends packets
)

// Divert is divert-to, divert-reply or divert-packet. FreeBSD's divert-to with a port alone is
// divert-packet: there the port is that of a divert(4) socket.
type Divert struct {
	token.Span
	Kind DivertKind
	Host *Host   // with divert-to to a socket
	Port *Number // nil with divert-reply
}

// Scrub is how matching packets are normalised.
type Scrub struct {
	token.Span
	NoDF          bool
	RandomID      bool
	ReassembleTCP bool
	MinTTL        *Count
	MaxMSS        *Count
}
