// Package scanner turns the bytes of a configuration into tokens.
//
// A Scanner reads one text: it drops blanks, joins continued lines and collects comments.
// A Stream is between scanners and the parser. It stores the macros and replaces each use
// of one by its tokens, so a macro may contain any piece of the grammar. The words follow
// pfctl's lexer, even where it is odd: "80:" and "fe80::1%em0" are words, "10.0.0.0/8" is
// three tokens, and text directly after a macro belongs to its last word.
package scanner
