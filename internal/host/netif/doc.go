// Package netif is what weir knows of the machine's network: links with their
// driver and queues, addresses, routes, neighbours, the events that change
// them, the network namespace all of it lives in, and the sysctls that belong
// to it. It reads and sets; what is right to set is decided above it.
//
// Everything acts in the network namespace of the process. A command that is
// to act in another one joins it first and starts itself anew (Enter), because
// the threads of a Go program do not share a namespace that one of them joins.
package netif
