// Package doctor finds what limits a router now. A [Snapshot] holds everything
// that was read of a host: facts, and two samples of counters with their time
// between. A check is a pure function from a snapshot to findings; the verdict
// is made of the findings. So a bundle from another machine, a test's fixture
// and the live host are judged by the same code.
//
// Reading the live host is internal/host/doctor/collect's work. A check that lacks
// what it reads says so: nothing that was not looked at is called fine.
package doctor
