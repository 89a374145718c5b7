// Package ac is an access concentrator of PPPoE, as small as it can be and still serve: many
// sessions, authentication, addresses. Tests and benchmarks have their clients talk to it. It
// carries no packets.
//
// A [Server] has no sockets and no clock; [Run] drives one with sockets of an interface.
package ac
