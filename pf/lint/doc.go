// Package lint finds what a configuration says and its author can hardly mean:
// rules that can never match, macros and tables that nothing uses, states that
// are missing on one side of a connection. Its cost is linear in the rules, so
// it misses what only a comparison of all with all would find.
package lint
