package ast

import (
	"net"

	"weir/pf/token"
)

// Ether is a FreeBSD rule for frames, or an anchor of such rules. It uses Action,
// Direction, Quick, On and the options of its Rule, From and To for the addresses after
// l3, and Anchor.
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

// MAC is an address of a frame, or all addresses that agree with it in the bits of Mask.
type MAC struct {
	token.Span
	Not  bool
	Addr [6]byte
	Mask [6]byte // all bits set: one address
}

// Bits returns the length of the mask as a prefix, or -1 if it is not a prefix.
func (m *MAC) Bits() int {
	if ones, size := net.IPMask(m.Mask[:]).Size(); size > 0 {
		return ones
	}
	return -1
}
