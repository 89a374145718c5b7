package ast

import (
	"net"

	"weir/pf/token"
)

// Ether is a rule of FreeBSD's for frames, or an anchor of such rules. Of its
// Rule, Action, Direction, Quick, On and the options are used, From and To for
// the addresses behind l3, and Anchor.
type Ether struct {
	Rule
	Keyword  token.Span
	BridgeTo *Word
	Types    []EtherType
	FromMACs []MAC // none: any
	ToMACs   []MAC
	Queue    *Word
}

// EtherType is a protocol of frames.
type EtherType struct {
	Word
	Number uint16
}

// MAC is an address of a frame, or those that agree with it in the bits of Mask.
type MAC struct {
	token.Span
	Not  bool
	Addr [6]byte
	Mask [6]byte // all bits set: one address
}

// Bits returns the length of the mask as a prefix, -1 if it is none.
func (m *MAC) Bits() int {
	if ones, size := net.IPMask(m.Mask[:]).Size(); size > 0 {
		return ones
	}
	return -1
}
