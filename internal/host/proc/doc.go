// Package proc reads what the kernel counts in /proc. github.com/prometheus/procfs
// parses what it covers; the readers here are for what it lacks. Every function takes
// the folder that stands for /proc, so that a recorded tree is read like the machine.
package proc
