// Package compare says in words what changes from one configuration to another: options,
// tables, rules. It compares meanings, expanded and resolved for the same machine.
// Comments, macros and the form of lists do not count.
package compare
