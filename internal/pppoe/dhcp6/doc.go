// Package dhcp6 is a DHCPv6 client that asks a provider for prefixes (RFC 8415, IA_PD), and for
// nothing else but name servers. It asks for no address of its own: a provider that has none for
// the link would refuse the prefix with it.
//
// A [Client] has no socket and no clock. A [Socket] carries its messages.
package dhcp6
