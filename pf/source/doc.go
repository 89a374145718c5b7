// Package source says what a configuration is read from: its first file, the
// files that it names, and the macros that are set from outside.
//
// Who reads a configuration chooses where those files come from: a command
// from the disk, the daemon from what the command has sent it.
//
// It stands at the bottom of pf, beside token.
package source
