// Package parser reads a configuration by recursive descent, with one method for each
// statement and clause, in the order of the grammar in pf.conf(5).
//
// A statement that does not parse is reported once and left out. Reading continues at the
// end of its line, or after the list in which it failed. Syntax that pf knows and this
// version does not is reported by name, and the rest of the statement is read as usual.
// The parser looks up no names: the resolver decides whether a word is an address, an
// interface or a host.
package parser
