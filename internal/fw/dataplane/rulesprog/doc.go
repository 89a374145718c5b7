// Package rulesprog is a program that asks the rules of bpf/rules/match.h about a
// crossing and does nothing else, for tests and benchmarks of internal/fw/dataplane:
// the frame is a struct judge.
package rulesprog

//go:generate go tool bpf2go -target bpfel Rules ../../../../bpf/test/rules_test.bpf.c
