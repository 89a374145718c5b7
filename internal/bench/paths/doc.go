// Package paths starts and stops what is measured between the firewall's two devices: the
// kernel's forwarding, nftables, weir, a bare XDP redirect, or nothing. nftables and weir
// get the same policy, from examples/. weir is this program, or another build of it.
//
// A path carries the frames of package traffic, or the traffic of sockets.
package paths
