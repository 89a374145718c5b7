// Package probe measures how long packets are under way: round trips of ICMP
// echo, the way of UDP datagrams in one direction with its jitter, and
// round-trips per minute under working conditions (RPM).
//
// Times of arrival are the kernel's, so that a busy machine's scheduler is not
// measured with them. Both ends have to be on one machine, in network
// namespaces: they share its clock. A [Place] says how a function is run there.
package probe
