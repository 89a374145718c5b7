// Package bpfload is the way to the kernel's BPF: it loads programs over maps
// that are already there, attaches them to interfaces, pins both where they
// outlive the process, maps tables into memory, and runs programs on frames.
//
// It is the only package that imports cilium/ebpf by hand, and knows nothing of
// what the programs do. internal/fw/dataplane loads weir's programs with it,
// internal/bench the frame generator.
//
// What is pinned or attached belongs to a network namespace and is reached
// through the mounts of process 1; a Place is where such work is done.
package bpfload
