package ast

import "weir/pf/token"

// Filter are clauses of a rule that may stand in any order behind its
// addresses. One that is not there is nil or zero.
type Filter struct {
	ReceivedOn    *Interface
	TOS           *Count // of the packet; 0 asks nothing
	Prio          *Count // of the packet
	Marked        *Mark  // of the packet
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

// Count is a number that a clause gives.
type Count struct {
	token.Span
	N uint32
}

// Rate is a number of packets in a number of seconds.
type Rate struct {
	token.Span
	N, Seconds uint32
}

// Set is what "set" gives packets that match.
type Set struct {
	Prio  *SetPrio
	Queue *SetQueue
	TOS   *Count
	Delay *Count // milliseconds
	Mark  *Mark
}

// Mark is what marked asks of a packet's mark, or what set mark makes of it: N of
// the bits of Mask. pf has no marks.
type Mark struct {
	token.Span
	Not  bool // ! marked
	N    uint32
	Mask uint32 // 0: none is given
}

// SetPrio are priorities for packets, and for those that tell of no data:
// acknowledgements and packets that ask for a low delay.
type SetPrio struct {
	token.Span
	N, Ack uint32
}

// SetQueue names the queues for packets, and for those that tell of no data.
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
	Block bool // (block): what is over the limit is dropped, else the rule does not match it
}

// DivertKind says where a rule diverts to.
type DivertKind uint8

// Kinds of diverting.
const (
	DivertTo     DivertKind = iota // divert-to: a socket of this machine
	DivertReply                    // divert-reply: the socket that is bound to the connection's address
	DivertPacket                   // divert-packet: a program that gets and gives packets
)

// Divert is divert-to, divert-reply or divert-packet.
type Divert struct {
	token.Span
	Kind DivertKind
	Host *Host   // of divert-to; nil where it has a port only, as on FreeBSD
	Port *Number // nil for divert-reply
}

// Scrub is how packets that match are cleaned.
type Scrub struct {
	token.Span
	NoDF          bool
	RandomID      bool
	ReassembleTCP bool
	MinTTL        *Count
	MaxMSS        *Count
}
