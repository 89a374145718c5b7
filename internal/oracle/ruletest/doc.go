// Package ruletest says whether rules do what a file expects of them: packets, and
// what is to become of each. It is weir check --expect: tests that stand beside
// the rules.
//
// A packet is written as text and made into bytes; internal/oracle/model, in a box made
// of a host's description, says what becomes of it; and each field of the
// expectation is compared with that. The form of the file is in
// docs/expectations.md.
package ruletest
