// Package cli holds the commands of weir. Nouns read and verbs change. A noun (rules,
// states, info, interfaces) writes only data to standard output, as JSON with --json. A
// verb (run, stop, load) changes what the box does and says what it did.
//
// Each command has a file of its own, and a constructor that takes the Env, so that tests
// run real commands with buffers for output. This package does not filter packets, load
// programs or use netlink. Commands call internal/fw/daemon, internal/fw/view,
// internal/bench and internal/lab, and print.
package cli
