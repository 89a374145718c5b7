// Package compare says in words what changes from one configuration to another:
// options, tables, rules. It compares what they mean, expanded and resolved for
// the same machine, so that comments, macros and the form of lists do not count.
package compare
