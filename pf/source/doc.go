// Package source says what a configuration is read from: its first file, the files that
// this names, and macros set from outside.
//
// The caller chooses where files come from. A command reads the disk. The daemon reads
// what the command has sent.
//
// The package is at the bottom of pf, beside token.
package source
