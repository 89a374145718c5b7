// Package xfrm reads the kernel's IPsec policies (ip xfrm policy), and hears when they change.
// Who made them does not matter: charon, pluto, or a person. Its callers decide what to do
// about them.
//
// Everything acts in the network namespace of the calling thread, as with netif.
package xfrm
