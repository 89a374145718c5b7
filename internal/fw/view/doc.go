// Package view reads what weir does in one network namespace, and prints it: the rules
// with their counters, states, interfaces, and weir's condition. It reads the run
// folder and the pinned maps, so it says the same whether the daemon lives or not. A
// View may be held for long, for metrics or a web page: it follows every load.
package view
