package ast

import "weir/pf/token"

// Owner is one condition of a "user" or "group" clause: on who owns the socket
// of this machine that a packet comes from or goes to.
type Owner struct {
	token.Span
	Op        PortOp
	Low, High ID // High for the operators that have two operands only
}

// ID is a user or a group, by name or by number.
type ID struct {
	Word
	Unknown bool   // nobody's: the packet is not of a socket of this machine
	Value   uint32 // known after resolving
}
