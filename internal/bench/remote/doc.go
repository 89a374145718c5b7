// Package remote measures between two machines: "weir bench server" on one,
// "weir bench client" on the other. docs/bench-protocol.md describes what they
// say to each other.
//
// Both sides have one key of 256 random bits. Each derives the certificates of
// both sides from it, and TLS 1.3 proves to each that the other has it. Over
// that connection the client calls the server (net/rpc). It asks for runs, and
// the server grants them, cut to its [Limits]. For each run both sides start an
// iperf3. Round trips are measured beside it by ICMP echo ([probe.Echo]).
//
// The other side may also be a stock iperf3 server. Then there is no key and no limit.
package remote
