// Package kernel is the engine of a tunnel in the kernel, for kernels that have WireGuard.
package kernel
