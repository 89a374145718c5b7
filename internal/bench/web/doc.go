// Package web sends real HTTP through a firewall: clients on one side, a server
// on the other, Go's own or nginx, with TLS or without. A [Plan] says how many
// clients do what in which phases, a [Result] what they saw: connections,
// transactions, bytes, and how long each took.
//
// Clients and server are threads of this program in the namespaces of a lab.
// They take turns with the firewall on the same cores, so a figure may be
// theirs: whoever compares paths has to say which is the limit.
package web
