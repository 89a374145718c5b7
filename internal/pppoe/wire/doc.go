// Package wire sends and receives the frames of PPPoE on a network interface: those of
// discovery and, of the sessions, the control protocols. The packets that a session carries
// stay in the kernel.
package wire
