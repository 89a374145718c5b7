// Package lib holds the verbs of the stories in test: build a network of
// namespaces, run weir in its middle, run real programs at its ends, look at
// what weir says. Everything that a story starts is ended and removed with it,
// however it ends.
//
// Each story runs twice: under TCX with the offloads of veth on, and under XDP
// with them off, because only then does what crosses a veth look like what a
// wire carries.
package lib
