package ast

import "weir/pf/token"

// Owner is one condition of a "user" or "group" clause: who owns the local socket that a
// packet comes from or goes to.
type Owner struct {
	token.Span
	Op        PortOp
	Low, High ID // High only for operators with two operands
}

// ID is a user or a group, by name or by number.
type ID struct {
	Word
	Unknown bool   // no owner: the packet has no socket on this machine
	Value   uint32 // known after resolving
}
