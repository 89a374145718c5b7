// Package profile says where a core spends its time in the kernel: which lines of
// BPF programs, which functions. It needs no hardware counters: the kernel's
// timer interrupts the core and notes where it was (cpu-clock).
package profile
