// Package state is what a connection's state is to the user: its two tuples,
// how far each end is, its age and its counters, printed as pfctl -ss prints
// them, as JSON, or filtered.
//
// A State holds what struct state of bpf/state/state.h holds, with the same numbers
// (a test compares them with the header). The dataplane reads States out of its
// map, the model keeps its own, and the tests compare the two; View is the form
// for people and for other programs. Nothing here knows the kernel or the rules.
package state
