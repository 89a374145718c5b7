// Package resolve gives a parsed configuration its meaning on a machine: it
// looks names up, resolves interfaces and hosts to addresses, expands lists to
// rules that ask one thing each, checks what pfctl checks, and fills defaults
// in.
//
// It does so in two steps. A file is expanded into a file of the same types
// (ast), which the printer can print; then each rule is lowered to a Rule, the
// form in which the compiler (internal/fw/ruleset) and the judge
// (internal/oracle/model) see it. Nothing here asks the kernel: what must be known of
// the machine is a Host.
package resolve
