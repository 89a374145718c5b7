// Command shuffle compiles the garbage collection from a copy of bpf/ in which the fields of every
// struct that tables hold stand in another order, and flows have one more. Tests take it
// for a later version's layout.
package main
