package state

import "fmt"

// Prio holds the priorities that rules set. The lower half is for most packets, the upper
// half for packets that carry no data or ask for low delay. Each half is the priority
// plus one, or 0 if none is set.
type Prio uint8

// PrioOf makes a Prio from two priorities.
func PrioOf(n, ack uint8) Prio { return Prio(n + 1 | (ack+1)<<4) }

// Of returns the priority of a packet. ok is false if none is set. urgent says that the
// packet carries no data or asks for low delay.
func (p Prio) Of(urgent bool) (n uint8, ok bool) {
	if urgent {
		p >>= 4
	}
	if p &= 0xf; p == 0 {
		return 0, false
	}
	return uint8(p) - 1, true
}

// String returns the value in the form of set prio. It returns "" if none is set.
func (p Prio) String() string {
	n, ok := p.Of(false)
	ack, _ := p.Of(true)
	switch {
	case !ok:
		return ""
	case n == ack:
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("(%d, %d)", n, ack)
}
