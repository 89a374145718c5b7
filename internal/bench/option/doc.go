// Package option checks the command-line options of a benchmark.
package option
