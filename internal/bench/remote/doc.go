// Package remote measures between two machines: "weir bench server" on one, and
// "weir bench client" on the other. docs/bench-protocol.md describes what they
// say to each other.
//
// Both know one key of 256 random bits. From it each derives the certificates
// of both sides, and TLS 1.3 proves to each that the other has it. Over that
// connection the client asks for runs and the server grants them, cut to its own
// [Limits]. What is measured flows beside it, in the clear: TCP connections that
// begin with a ticket, and UDP from and to an address that has been proven. No
// UDP socket is open before a client has shown that it has the key.
//
// With a stock iperf3 server as the other side there is no key and no limit; the
// program iperf3 does the talking.
package remote
