// Package state describes a connection's state to the user: its two tuples, the progress
// of each end, its age and its counters. It prints states as pfctl -ss does or as JSON,
// and filters them.
//
// A State has the contents of struct state of bpf/state/state.h, with the same numbers (a
// test compares them with the header). The dataplane reads States from its map, the model
// keeps its own, and the tests compare the two. View is the form for people and for other
// programs. Nothing here depends on the kernel or the rules.
package state
