package ast

import "weir/pf/token"

// LimiterDef is the definition of a state limiter or a source limiter.
type LimiterDef struct {
	token.Span
	Source  bool // source limiter: counts each sender separately
	Name    Word
	ID      uint32
	Limit   uint32 // states; 0: not given
	Rate    uint32 // states created in Seconds; 0: not given
	Seconds uint32

	// of a source limiter
	Entries     uint32 // senders; 0: not given
	Inet, Inet6 *uint8 // bits of an address that identify a sender
	Table       *Word  // table for senders above the limits; nil: none
	Above       uint32 // states from which on senders are added to it
	Below       uint32 // states below which they are removed; 0: not given
}
