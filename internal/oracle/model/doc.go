// Package model judges packets slowly and obviously. It is the reference that
// the dataplane is tested against, and the place to read what weir does: one
// function per step of docs/packet-path.md, in the order and with the names of
// that text.
//
// A Model is given a ruleset as pf/resolve makes it (never what internal/fw/ruleset
// compiles from it, else both would share a bug), a description of the box, and
// frames one by one; it answers with a verdict, a reason and the frame as it
// goes on, and keeps states. It parses frames itself, searches states one after
// the other, and computes sums over all bytes that they cover.
//
// Where the dataplane may choose (a source port), the model adopts the choice if
// it is one of those allowed; see choice.go. It does not model when old states
// are swept, only what that means for packets, nor cores.
package model
