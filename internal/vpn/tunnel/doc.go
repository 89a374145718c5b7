// Package tunnel is what the engines of tunnels have in common: what is asked of one, and what it
// tells. The kernel's WireGuard is an engine, and so is the one in user space.
package tunnel
