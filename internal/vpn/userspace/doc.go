// Package userspace is the engine of a tunnel in user space, for kernels without WireGuard. The
// tunnel's interface is a tun device that outlives the process.
package userspace
