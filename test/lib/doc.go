// Package lib holds the verbs of the stories in test: build a network of
// namespaces, run weir in its middle, run real programs at its ends, look at
// what weir says. Everything that a story starts is ended and removed with it,
// however it ends.
//
// Each story runs twice: under TCX with the offloads of veth on, and under XDP
// with them off, because only then does what crosses a veth look like what a
// wire carries. Stories mostly wait, so they run side by side, twice as many as there
// are cores; those that would not bear it say so (Binary.Both), and what else looks
// at the whole machine runs alone because it does not call Parallel.
package lib
