// Package bpfload is weir's access to the kernel's BPF. It loads programs over existing
// maps, attaches them to interfaces, and pins both so that they outlive the process. It
// also maps tables into memory and runs programs on frames.
//
// No other hand-written package imports cilium/ebpf. bpfload does not know what the
// programs do. internal/fw/dataplane loads weir's programs with it, internal/bench the
// frame generator.
//
// Pinned and attached objects belong to a network namespace and are reached through the
// mounts of process 1. A Place is where such work is done.
package bpfload
