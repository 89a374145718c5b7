// Package ruletest checks whether rules do what a file expects of them: packets, and the
// expected result of each. It is weir check --expect: tests beside the rules.
//
// A packet is written as text and made into bytes. internal/oracle/model, in a box made
// from a host's description, returns the result. Each field of the expectation is
// compared with it. docs/expectations.md has the form of the file.
package ruletest
