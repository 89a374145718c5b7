// Package field lists what a rule can say: one Field for each field of resolve.Rule and
// of ast.Rule, with everything that its readers must know. A new keyword gets its entry
// here; tests fail without one.
//
// The readers are the resolver (is the field enforced, may an anchor have it), the
// optimizer, the linter, and the compiler in internal/fw/ruleset.
package field
