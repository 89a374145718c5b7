// Package sample reads the state of a machine several times a second while something else
// is measured: its cores' time, the kernel's receive queues, links and their queues, and
// what weir dropped and why. A [Point] is what happened between two readings. Reports
// show points beside the throughput. [Watch] and [Record] read only the cores and a
// meter, for benchmarks whose paths share the machine. [Chart] draws these.
//
// Reading takes time on the measured machine, so little is read. If the machine is too
// busy to be read in time, the interval gets longer. The report has its real length.
package sample
