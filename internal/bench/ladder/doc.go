// Package ladder measures what each step between two hosts costs real traffic:
// loopback, a wire, a router, a stateful firewall, NAT. Each rung is the one
// before it and one thing more, so that the difference is that thing's.
//
// It does by itself what people do with iperf3, netcat and patience: one
// connection and many, two pairs of hosts that begin at the same moment, the
// CPU time of a gigabit, round trips while the line is idle and while it is
// full. The lab and the paths are those of internal/bench, the programs are
// iperf3 and the probers of internal/bench/probe, and what comes out is a
// report.Document. judge.go says what is concluded from which figures.
package ladder
