// Package traffic sends frames of a known kind across the testbed and looks at
// what arrives. A BPF program that the kernel runs on live frames writes them
// (bpf/generate.bpf.c). Others check each frame (check), count frames (count), or
// read their time stamps (measure).
//
// A [Case] says which frames, a [Setup] where they start, where they end and what
// the path between has to change. No frame is counted before one of each
// connection was found to be right.
package traffic
