// Package cpulist reads and writes sets of cores as the kernel does: lists ("0-3,8")
// and masks ("f0").
package cpulist
