// Package forward measures how fast packets are forwarded: by weir, by nftables, by the
// kernel, and by a bare redirect, which is the limit of the machine. All paths take turns
// in one run. Generator, path and sink share a core, so a figure is what one core does
// with all three. The generator path shows the cost without a firewall. This is "weir
// bench forward"; docs/measuring.md describes the method.
package forward
