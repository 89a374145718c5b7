// Package limits has the numbers of bpf/config.h in Go: limits of the dataplane, and times
// in ticks or nanoseconds. The comments that explain them are in the header.
package limits

//go:generate go run ./gen -header ../../../bpf/config.h -go limits_gen.go
