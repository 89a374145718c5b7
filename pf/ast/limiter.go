package ast

import "weir/pf/token"

// LimiterDef is the definition of a state limiter or a source limiter.
type LimiterDef struct {
	token.Span
	Source  bool // source limiter: for each sender, not for all
	Name    Word
	ID      uint32
	Limit   uint32 // states; 0: not given
	Rate    uint32 // states made in Seconds; 0: not given
	Seconds uint32

	// of a source limiter
	Entries     uint32 // senders; 0: not given
	Inet, Inet6 *uint8 // bits of an address that make one sender
	Table       *Word  // that senders are put into; nil: none
	Above       uint32 // states from which on they are
	Below       uint32 // and below which they are taken out; 0: not given
}
