// Package lint finds statements that the author can hardly mean: rules that never match,
// unused macros and tables, missing states on one side of a connection. Its cost is
// linear in the number of rules, so it misses what only a comparison of all pairs would
// find.
package lint
