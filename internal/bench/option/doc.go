// Package option checks what was given on the command line of a benchmark.
package option
