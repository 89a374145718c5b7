package dataplane

import "net"

// InterfaceFlags are what the programs must know of an interface: the bits
// INTERFACE_* of bpf/maps.h.
type InterfaceFlags uint8

// Flags of an interface.
const (
	InterfacePresent  InterfaceFlags = 1 << iota // weir's programs are attached
	InterfaceSkip                                // set skip on
	InterfaceL3                                  // no Ethernet header (tun, WireGuard, ppp)
	InterfaceXDP                                 // XDP judges what comes in; TCX ingress only marks
	InterfaceTarget                              // can be reached by an XDP redirect
	InterfaceLoopback                            // no sanity
	InterfaceStatic4                             // has a static IPv4 address: no implicit DHCP
	InterfaceStatic6                             // has a static global IPv6 address: no implicit DHCPv6
)

// MaxIfindex is one more than the highest index of an interface that can be
// known; packets of others are dropped with reason "interface".
const MaxIfindex = 16384

// MaxInterfaces is how many interfaces are counted apart; the rest are counted
// together, under Ifindex 0.
const MaxInterfaces = 256

// An Interface is what the programs must know of one.
type Interface struct {
	MAC   net.HardwareAddr // 6 bytes; empty where the device has no Ethernet header
	MTU   uint32           // bytes of an IP packet
	Flags InterfaceFlags
}
