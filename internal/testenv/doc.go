// Package testenv checks what a test needs from its machine: root, programs, kernel
// features, files beside the checkout.
//
// If a need is not met, the test is skipped with a message that names it. If the whole
// suite must run ([NoSkip] is set, as in continuous integration), the test fails instead,
// so that a missing program cannot look like success. Only tests import this package, and
// they skip only through it: the linter refuses (*testing.T).Skip elsewhere.
package testenv
