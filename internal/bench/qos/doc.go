// Package qos measures queues with real TCP: how much of a line's rate connections get, how
// evenly they share it, how far a burst goes beyond it, and what waits meanwhile. weir's
// queues and those of the kernel are measured in turn, in network namespaces with a delay
// line (internal/lab/delayline):
//
//	lan ──▶ fw: queues ──▶ wan, with a program that counts what arrives
//	 ▲                      │
//	 └────── fw ◀── delay line
//
// What each figure has to reach stands beside it (judge.go). What a packet costs is measured
// elsewhere, by a generator.
package qos
