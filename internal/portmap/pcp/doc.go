// Package pcp answers requests of NAT-PMP (RFC 6886) and of PCP (RFC 6887), which share a
// port and tell each other apart by their version. It turns bytes into bytes; sockets and
// the loading of rules are its caller's.
package pcp
