// Package resolve gives a parsed configuration its meaning on a machine. It looks names
// up, resolves interfaces and hosts to addresses, expands lists to rules with one
// condition each, checks what pfctl checks, and fills in defaults.
//
// It works in two steps. A file is expanded into a file of the same types (ast), which
// the printer can print. Then each rule is lowered to a Rule, the form for the compiler
// (internal/fw/ruleset) and the model (internal/oracle/model). Nothing here asks the
// kernel: a Host holds what must be known about the machine.
package resolve
