package qos

// The compiler and its flags come from the Makefile (make generate), which pins
// them: another compiler makes other bytes.

//go:generate go tool bpf2go -target bpfel -type cell arrivals bpf/arrivals.bpf.c
