// Package web sends real HTTP through a firewall. Clients are on one side, a server on
// the other: Go's own or nginx, with or without TLS. A [Plan] says how many clients do
// what in which phases. A [Result] has what they saw: connections, transactions, bytes,
// and how long each took.
//
// Clients and server are threads of this program in the namespaces of a lab. They share
// the cores with the firewall, so they may be the limit of a figure. Whoever compares
// paths has to name the limit.
package web
