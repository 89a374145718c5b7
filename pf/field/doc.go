// Package field lists what a rule can say: one Field for each field of
// resolve.Rule and of ast.Rule, with what all who judge rules have to know of it.
// A new keyword gets its place here, and tests fail for one that has none.
//
// It is read by the resolver (is it enforced, may an anchor have it), the
// optimizer, the linter, and the compiler of internal/fw/ruleset.
package field
