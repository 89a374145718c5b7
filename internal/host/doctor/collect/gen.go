package collect

// The compiler and its flags come from the Makefile (make generate), which pins
// them: another compiler makes other bytes.

//go:generate go tool bpf2go -target bpfel -type core -type device -type polled watch bpf/watch.bpf.c
