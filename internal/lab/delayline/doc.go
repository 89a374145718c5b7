// Package delayline holds packets for a time, as a long line does, in user space: not every
// kernel has netem. Stories and benchmarks use it for the acknowledgements of TCP, so that
// the data need not go through it.
package delayline
