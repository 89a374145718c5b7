// Package queueprog is a program that has only the queues of bpf/queue, without packets and
// with a clock that its caller sets. It is for tests of internal/fw/dataplane.
package queueprog

//go:generate go tool bpf2go -target bpfel -type trial -type moment Queue ../../../../bpf/test/queue_test.bpf.c
