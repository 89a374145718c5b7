// Package cli holds the commands of weir. Nouns read and verbs change: a noun
// (rules, states, info, interfaces) writes only data to standard output, and
// --json makes that data JSON; a verb (run, stop, load) changes what the box
// does and says what it did.
//
// Each command stands in a file of its own and has a constructor that takes
// the Env, so that tests run real commands with buffers for output. Nothing
// here decides about packets, loads programs or talks netlink: commands ask
// internal/fw/daemon, internal/fw/view, internal/bench and internal/lab, and print.
package cli
