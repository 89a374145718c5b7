// Package control is the daemon's control socket: what only a daemon can do, such as
// to load a ruleset, to hand out captured packets and to leave. It speaks HTTP with
// JSON bodies over a Unix socket in the run folder, and answers root alone.
package control
