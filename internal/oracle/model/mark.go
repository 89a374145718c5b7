package model

import (
	"math/bits"

	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// OwnMarks returns weir's own bits.
func OwnMarks(o *resolve.Options) Marks {
	if o.MarkMask == 0 {
		return Marks{resolve.DefaultMarkMask}
	}
	return Marks{o.MarkMask}
}

// Values of weir's own bits of a packet's mark (enum mark of bpf/config.h). They say how
// TCX egress finds a packet that was handed to the stack.
const (
	MarkNone   uint32 = iota // not weir's
	MarkCame                 // its tuple is the one that its state has
	MarkLeaves               // it is as it leaves: the state has the tuple of its reply
	MarkDivert               // a socket of the box has it
	MarkRecord               // and above: a record of its tuple
)

// Marks knows which bits are weir's own.
type Marks struct{ Mask uint32 }

// marks returns the bits that the rules leave to weir.
func (m *Model) marks() Marks { return OwnMarks(&m.rules.Options) }

// Of returns the value of weir's own bits.
func (m Marks) Of(mark uint32) uint32 { return mark & m.Mask >> bits.TrailingZeros32(m.Mask) }

// Set returns a mark with another value of weir's own bits. The others stay.
func (m Marks) Set(mark, value uint32) uint32 {
	return mark&^m.Mask | value<<bits.TrailingZeros32(m.Mask)
}

// Records returns how many packets of one tuple the values above can tell apart.
func (m Marks) Records() int {
	return min(1<<bits.OnesCount32(m.Mask)-int(MarkRecord), maxRecords)
}

// noteMarks keeps the bits of the mark that rules have set.
func (c *connection) noteMarks(in, out *crossing) {
	c.Mark, c.MarkMask = in.mark.N|out.mark.N, [2]uint32{in.mark.Mask, out.mark.Mask}
	if c.MarkMask != [2]uint32{} {
		c.Flags |= state.Marked
	}
}

// markOn returns a packet's mark with the bits that the rules of its connection have set.
func (c *connection) markOn(mark uint32) uint32 {
	return resolve.Mark{N: c.Mark, Mask: c.MarkMask[0] | c.MarkMask[1]}.On(mark)
}

// routeMarkBits returns the bits of the mark that a connection's packets are routed by: replies
// have none.
func (c *connection) routeMarkBits(d int) resolve.Mark {
	if d == 1 {
		return resolve.Mark{}
	}
	return resolve.Mark{N: c.Mark & c.MarkMask[0], Mask: c.MarkMask[0]}
}

// routeMark returns the mark that a packet is routed by.
func (c *connection) routeMark(mark uint32, d int) uint32 { return c.routeMarkBits(d).On(mark) }
