// Package token holds what every stage of the language shares: the kinds of
// tokens, and places in the text.
//
// A place is a Pos, a byte offset into all sources that a FileSet knows. A
// source is a file or the use of a macro: each use gets a range of positions
// of its own, so that a token which comes out of a macro remembers, in a
// single number, both where the macro was used and where its text stands.
// Lines and columns are computed only when something is printed.
//
// It stands at the bottom of pf: token < scanner < ast < parser < resolve.
package token
