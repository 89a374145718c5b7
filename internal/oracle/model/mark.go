package model

import (
	"math/bits"

	"weir/pf/resolve"
)

// OwnMarks returns what weir's own bits are.
func OwnMarks(o *resolve.Options) Marks {
	if o.MarkMask == 0 {
		return Marks{resolve.DefaultMarkMask}
	}
	return Marks{o.MarkMask}
}

// Values of weir's own bits of a packet's mark (enum mark of bpf/config.h). They say
// by what TCX egress finds out about a packet that was handed to the stack.
const (
	MarkNone   uint32 = iota // not weir's
	MarkCame                 // its tuple is the one that its state knows it by
	MarkLeaves               // it is as it leaves: the state knows the tuple of its reply
	MarkRecord               // and above: a record of its tuple
)

// Marks knows which bits are weir's own.
type Marks struct{ Mask uint32 }

// marks are the bits that the rules leave to weir.
func (m *Model) marks() Marks { return OwnMarks(&m.rules.Options) }

// Of returns the value of weir's own bits.
func (m Marks) Of(mark uint32) uint32 { return mark & m.Mask >> bits.TrailingZeros32(m.Mask) }

// Set returns a mark with another value of weir's own bits. The others stay.
func (m Marks) Set(mark, value uint32) uint32 {
	return mark&^m.Mask | value<<bits.TrailingZeros32(m.Mask)
}

// Records is how many packets of one tuple the values above tell apart.
func (m Marks) Records() int {
	return min(1<<bits.OnesCount32(m.Mask)-int(MarkRecord), maxRecords)
}
