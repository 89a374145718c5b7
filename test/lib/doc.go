// Package lib holds the verbs of the stories in test: build a network of namespaces, run
// weir in its middle, run real programs at its ends, and look at weir's output.
// Everything that a story starts is ended and removed with it, however it ends.
//
// Each story runs twice: under TCX with the offloads of veth on, and under XDP with them
// off. Only then do the frames on a veth look like those on a wire. Stories mostly wait,
// so they run side by side, twice as many as there are cores. Those that cannot bear this
// say so (Binary.Both). Other tests that look at the whole machine do not call Parallel,
// so they run alone.
package lib
