// Package kernels runs chosen tests of the tree on another kernel than the machine's, in
// software emulation. The script run prepares it, guest runs inside, and tests.txt says
// what runs there. The tests of this package check that the emulated kernel has what the
// other tests need.
package kernels
