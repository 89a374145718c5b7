// Command shuffle compiles the garbage collection from a copy of bpf/. In the copy, every
// struct in the tables has its fields in another order, and flows have an extra field.
// Tests use it as a later version's layout.
package main
