// Package parser reads a configuration by recursive descent: one method for
// each statement and clause, in the order of the grammar in pf.conf(5).
//
// A statement that does not parse is reported once and left out; reading goes
// on at the end of its line, or behind the list that it broke off in. What pf
// knows and this version does not is reported by name, and the rest of the
// statement is read as usual. No names are looked up here: whether a word is
// an address, an interface or a host is the resolver's question.
package parser
