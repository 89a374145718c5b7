// Package cpu says which cores a benchmark may use and how they spent their time, so that
// runs disturbed by other programs do not count.
package cpu
