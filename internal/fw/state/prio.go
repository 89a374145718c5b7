package state

import "fmt"

// Prio is the priorities that rules give packets: in its lower half for packets, in
// its upper half for those that carry no data or ask for a low delay. Each is one
// more than the priority; 0: none is given.
type Prio uint8

// PrioOf makes a Prio of two priorities.
func PrioOf(n, ack uint8) Prio { return Prio(n + 1 | (ack+1)<<4) }

// Of gives the priority of a packet, if any is given. urgent: it carries no data or
// asks for a low delay.
func (p Prio) Of(urgent bool) (n uint8, ok bool) {
	if urgent {
		p >>= 4
	}
	if p &= 0xf; p == 0 {
		return 0, false
	}
	return uint8(p) - 1, true
}

// String is what set prio says; empty for none.
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
