// Package scanner turns the bytes of a configuration into tokens.
//
// A Scanner does it for one text: it drops blanks, joins continued lines and
// sets comments aside. A Stream stands between scanners and the parser: it
// keeps the macros and replaces each use of one by its tokens, so that a macro
// may hold any piece of the grammar. The words follow pfctl's lexer, also
// where that is odd: "80:" and "fe80::1%em0" are words, "10.0.0.0/8" is three
// tokens, and text right behind a macro belongs to its last word.
package scanner
