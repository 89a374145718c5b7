// Package testenv says what a test needs of the machine that runs it: root,
// programs, a kernel with some feature, files beside the checkout.
//
// A test whose need is not met is skipped with a sentence that names it. Where
// the whole suite has to run ([NoSkip] set in the environment, as continuous
// integration does), the same test fails instead, so that a missing program
// cannot pass for success. Only tests import this package, and tests skip
// through it alone: the linter refuses (*testing.T).Skip elsewhere.
package testenv
