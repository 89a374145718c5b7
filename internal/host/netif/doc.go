// Package netif reads and sets the machine's network: links with their driver and queues,
// addresses, routes, neighbours, events that change them, the network namespace, and its
// sysctls. Its callers decide what to set.
//
// Everything acts in the network namespace of the process. A command for another
// namespace joins it first and then restarts itself (Enter). The threads of a Go program
// do not share a namespace that one of them joins.
package netif
