// Package sample reads, several times a second while something else is
// measured, what a machine does: its cores' time, the kernel's receive queues,
// links and their queues, and what weir dropped and why. What happened between
// two readings is a [Point]; points stand beside the throughput in a report.
// [Watch] and [Record] look at no more than the cores and a meter, for benchmarks
// whose paths share the machine; [Chart] is the one picture of that.
//
// Reading costs time of the machine that is measured, so little is read, and a
// machine that is too busy to let itself be read says that by the length of the
// interval, which is reported as it was and not as it was meant.
package sample
