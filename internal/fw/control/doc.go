// Package control is the daemon's control socket. It offers what only a daemon can do:
// load a ruleset, deliver captured packets, end. It speaks HTTP with JSON bodies over a
// Unix socket in the run folder, and serves only root.
package control
