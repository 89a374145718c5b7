// Package doctor finds what limits a router now. A [Snapshot] holds everything read from a
// host: facts, two samples of counters, and the time between them. A check is a pure
// function from a snapshot to findings, and the verdict is made from the findings. So the
// same code judges a bundle from another machine, a test's fixture and the live host.
//
// internal/host/doctor/collect reads the live host. A check that lacks its input says so:
// doctor calls nothing fine that it did not look at.
package doctor
