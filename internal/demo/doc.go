// Package demo is weir demo: a home gateway between two networks, built from network
// namespaces. It runs with examples/gateway.conf and is used by programs that know
// nothing of weir: ping, iperf3, curl. It prints checks. Each line is something that was
// just tried, and the first failure ends the demo.
//
// Like other users of internal/lab it starts this binary's own weir run, so it shows the
// product and not a part of it. Nothing is left behind, even after an interrupt.
package demo
