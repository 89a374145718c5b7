package bpfload

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// RunSyscall runs a program of type syscall once and returns its return value. ctx is nil
// or points to what the program reads and writes.
func RunSyscall(p *Program, ctx any) (uint32, error) {
	if p == nil {
		return 0, fmt.Errorf("run: no such program")
	}
	result, err := p.Run(&ebpf.RunOptions{Context: ctx, ContextOut: ctx})
	if err != nil {
		return 0, fmt.Errorf("run: %w", err)
	}
	return result, nil
}

// CPUs returns the number of values that a per-CPU map has for a key.
func CPUs() (int, error) {
	n, err := ebpf.PossibleCPU()
	if err != nil {
		return 0, fmt.Errorf("count the CPUs: %w", err)
	}
	return n, nil
}
