// Package demo is weir demo: a home gateway between two networks, built of
// network namespaces, run with examples/gateway.conf and used by programs that
// know nothing of weir: ping, iperf3, curl. What it prints are checks: each line
// is something that was tried just then, and the first that is not as it should
// be ends the demo as failed.
//
// It stands beside the other users of internal/lab and starts this binary's own
// weir run, so it shows the product and not a part of it. Nothing is left
// behind, also after an interrupt.
package demo
