// Package token has what every stage of the language shares: the kinds of tokens, and
// places in the text.
//
// A place is a Pos, a byte offset into all sources of a FileSet. A source is a file or
// one use of a macro. Each use has a range of positions of its own, so a single number
// tells both where a macro was used and where its text is. Lines and columns are computed
// only for printing.
//
// It is the lowest package of pf: token < scanner < ast < parser < resolve.
package token
