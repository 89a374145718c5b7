// Package foreign has the tests of the client and of the concentrator against programs that
// are not weir's: pppoe-server and pppd, with the kernel's own PPPoE. A kernel without that
// skips them; the emulated one of test/kernels has it.
package foreign
