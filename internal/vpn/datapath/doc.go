// Package datapath carries the packets of a tunnel between its tun device and its UDP port. Each worker
// is a thread that takes a packet through all of its way: there is no queue and no channel between
// workers, and nothing is allocated for a packet. A worker has a queue of the tun device, and all of
// them share the port. Out: what the kernel has put together is split, encrypted and sent as one
// datagram that the kernel splits (UDP_SEGMENT). In: a datagram that the kernel has put together
// (UDP_GRO) is decrypted where it is, and what belongs together is written at once. Several workers
// decrypt what came to one port at the same time; the order in which it came is restored before the
// replay window and the tun device.
package datapath
