// Package cpulist reads and writes sets of cores in the kernel's forms: lists ("0-3,8")
// and masks ("f0").
package cpulist
