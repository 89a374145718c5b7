// Package proc reads the kernel's counters in /proc. It uses github.com/prometheus/procfs
// for what that covers, and its own readers for the rest. Every function takes the
// directory that stands for /proc, so a recorded tree is read like the machine.
package proc
