package resolve

import (
	"math/bits"

	"weir/pf/ast"
)

// DefaultMarkMask is the default of set mark-mask: three bits that Tailscale, Kubernetes,
// the CNI plugins, AWS, Calico and administrators' small numbers do not use.
// docs/packet-path.md lists them.
const DefaultMarkMask = 0xe0000000

// Limits of the number of bits in set mark-mask. Two values of the bits have a fixed
// meaning, and 0 is none of weir's. The others distinguish packets that look alike in the
// stack.
const (
	leastMarkBits = 3
	mostMarkBits  = 8
)

// Mark is a value for some bits of a packet's mark. If Mask is 0, nothing is set or
// required.
type Mark struct {
	N, Mask uint32
}

// Marked is a condition on the mark.
type Marked struct {
	Mark
	Not bool
}

// Match reports whether a packet's mark meets the condition. An empty condition always
// matches.
func (m Marked) Match(mark uint32) bool {
	return m.Mask == 0 || (mark&m.Mask == m.N) != m.Not
}

// On returns mark with m's bits set.
func (m Mark) On(mark uint32) uint32 { return mark&^m.Mask | m.N }

// markMask checks set mark-mask. newResolver has noted it.
func (r *resolver) markMask(s *ast.MarkMask) {
	ones := bits.OnesCount32(s.Mask)
	together := bits.Len32(s.Mask)-bits.TrailingZeros32(s.Mask) == ones
	if ones < leastMarkBits || ones > mostMarkBits || !together {
		r.faults.Errorf(s.Span, "mark-mask must be %d to %d adjacent bits, such as 0xe0000000, not 0x%x", leastMarkBits, mostMarkBits, s.Mask)
	}
}

// checkMarks checks a rule's conditions on marks and the marks that it sets.
func (r *resolver) checkMarks(in *ast.Rule) {
	r.checkMark(in.Marked)
	r.checkMark(in.Set.Mark)
	if in.Set.Mark != nil && in.Action == ast.Block {
		r.faults.Errorf(in.Set.Mark.Span, "set mark is allowed only in pass and match rules")
	}
}

func (r *resolver) checkMark(m *ast.Mark) {
	switch {
	case m == nil:
	case (m.N|m.Mask)&r.options.MarkMask != 0:
		r.faults.Errorf(m.Span, "weir uses the bits 0x%x of the mark itself: choose other bits, or change weir's with set mark-mask", r.options.MarkMask)
	case m.Mask != 0 && m.N&^m.Mask != 0:
		r.faults.Errorf(m.Span, "0x%x has bits that the mask 0x%x does not have", m.N, m.Mask)
	}
}

// lowerMark fills in a missing mask: all bits except weir's own.
func (r *resolver) lowerMark(m *ast.Mark) Mark {
	switch {
	case m == nil:
		return Mark{}
	case m.Mask == 0:
		return Mark{N: m.N, Mask: ^r.options.MarkMask}
	}
	return Mark{N: m.N, Mask: m.Mask}
}
