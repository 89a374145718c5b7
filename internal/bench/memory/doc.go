// Package memory measures the cost of one random access to memory, by the size of the
// memory. With a million connections this decides the cost of a packet. A BPF program
// does the accesses. Each depends on the one before it.
package memory
