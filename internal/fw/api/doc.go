// Package api is what the outside sees of weir in one network namespace: the
// run folder with the records that the daemon leaves there, the forms of rules,
// states, interfaces and counters in JSON and in print, and the control socket.
//
// Reading needs no daemon: Open gathers everything from the run folder and the
// pinned maps, so that a reading command says the same whether the daemon lives
// or not. The socket carries what only the daemon can do: load a ruleset, and
// leave. It speaks HTTP with JSON bodies and answers root alone.
package api
