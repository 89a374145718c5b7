// Package probe measures how long packets are under way: round trips of ICMP echo,
// one-way delays of UDP datagrams with their jitter, and round-trips per minute under
// working conditions (RPM).
//
// Times of arrival are the kernel's, so the scheduling of a busy machine is not measured.
// Both ends have to be on one machine, in network namespaces, because they share its
// clock. A [Place] runs a function at one of the ends.
package probe
