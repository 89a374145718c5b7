package ast

import (
	"net/netip"

	"weir/pf/token"
)

// WireGuard is the interface of a WireGuard tunnel.
type WireGuard struct {
	token.Span
	Name      Word
	Port      *Count
	Key       *Word // the file with the private key
	Addresses []Network
	MTU       *Count
	Engine    *Word  // kernel or userspace; nil: either
	NoRoute   bool   // no routes lead to the networks of its peers
	NoMSS     bool   // max-mss is left to the rules
	CopyDSCP  bool   // outer packets have the code point of inner ones
	DSCP      *Count // outer packets have this code point
}

// MostPorts is how many ports a wide link has at most, that of its tunnel among them. They follow each other.
const MostPorts = 16

// Peer is the other end of a tunnel.
type Peer struct {
	token.Span
	Name      Word
	On        Word  // the tunnel's interface
	Key       *Word // its public key
	PSK       *Word // the file with the preshared key
	Ways      []Way // that lead to it, the preferred one first; none: the peer comes from anywhere
	Allowed   []Network
	Keepalive *Count // seconds
	ShowLoad  bool   // it may ask which cores and links are full here
	// ShowSummary: it may ask what this end is configured as, for it.
	ShowSummary bool
	Wide        *Count // ports of the link to it, which is a weir; nil: see WideAuto
	WideAuto    bool   // as many as weir likes
	NoRoute     bool
}

// Way is an endpoint of a peer, and the uplink by which it is reached.
type Way struct {
	token.Span
	Host Word // an address or a name
	Port *Count
	On   *Word // the interface that packets leave by; nil: routes decide
}

// Network is an address with the length of its network's prefix.
type Network struct {
	token.Span
	netip.Prefix
}
