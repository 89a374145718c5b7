// Package model evaluates packets slowly and obviously. It is the reference that the
// dataplane is tested against, and the place to read what weir does: one function per
// step of docs/packet-path.md, in the order and with the names of that text.
//
// A Model has a ruleset from pf/resolve, a description of the box, and gets frames one by
// one. It never gets the output of internal/fw/ruleset, or else both would share a bug.
// It returns a verdict, a reason and the frame as it goes on, and keeps states. It parses
// frames itself, searches states one after the other, and computes sums over all bytes
// that they cover.
//
// If the dataplane may choose (a source port), the model uses that choice if it is
// allowed; see choice.go. It does not model when old states are collected, only what that
// means for packets. It does not model cores.
package model
