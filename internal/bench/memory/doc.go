// Package memory measures what one random access to memory costs, by the size of
// the memory: with a million connections, that decides what a packet costs. A BPF
// program does the accesses. Each depends on the one before it.
package memory
