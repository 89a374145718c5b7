// Package cpu says which cores a benchmark may use and how they spent their time,
// so that a run that other programs disturbed does not count.
package cpu
