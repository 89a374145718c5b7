// Package ladder measures what each step between two hosts costs real traffic: loopback,
// a wire, a router, a stateful firewall, NAT. Each rung adds one thing to the rung before
// it, so the difference is that thing's cost.
//
// It automates what people do with iperf3, netcat and patience: one connection and many,
// two pairs of hosts that begin at the same moment, the CPU time of a gigabit, round
// trips while the line is idle and while it is full. The lab and the paths are those of
// internal/bench. The programs are iperf3 and the probers of internal/bench/probe. The
// result is a report.Document. judge.go says which figures lead to which conclusions.
package ladder
