// Package bench measures how fast packets are forwarded: by weir, by the
// kernel, by nftables, and by a bare redirect that shows how much the machine
// could do at all. Every figure comes from one machine, side by side in one
// run, and from frames that were found to be right before they were counted.
//
//	lan: generator ──veth── fw: the path that is measured ──veth── wan: sink
//
// It builds a lab of its own (internal/lab), writes frames with a BPF program
// that the kernel runs on live frames, and starts the paths in turn; the weir
// paths are this very binary. docs/measuring.md says which traps there are and
// how each is avoided. Statistics stand in stat.go, once for all benchmarks.
package bench
