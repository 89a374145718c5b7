package collect

// The Makefile sets the compiler and its flags (make generate), because another compiler
// makes other bytes.

//go:generate go tool bpf2go -target bpfel -type core -type device -type polled watch bpf/watch.bpf.c
