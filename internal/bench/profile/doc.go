// Package profile says where a core spends its time in the kernel: in which lines of BPF
// programs and in which functions. It needs no hardware counters: the kernel's timer
// interrupts the core and notes its address (cpu-clock).
package profile
