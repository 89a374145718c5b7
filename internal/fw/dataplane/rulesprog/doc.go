// Package rulesprog is a program that only evaluates the rules of bpf/rules/match.h for a
// crossing. It is for tests and benchmarks of internal/fw/dataplane. The frame is the
// struct of the crossing.
package rulesprog

//go:generate go tool bpf2go -target bpfel Rules ../../../../bpf/test/rules_test.bpf.c
