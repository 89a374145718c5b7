package device

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// DefaultMTU is that of an interface of which nothing is known.
const DefaultMTU = 1420

// A Network carries messages over UDP. Its receivers call the methods of a Device in datapath.go.
type Network interface {
	// Open begins to listen on a port; 0 is any. It returns the port.
	Open(port uint16) (uint16, error)
	// Close ends that. No message is received after it has returned. It may be closed already.
	Close() error
	// Send sends one message. It does not wait for room: the message leaves when there is some.
	Send(message []byte, to *Endpoint) error
}

// Endpoint is where a peer is. It does not change once a peer has it.
type Endpoint struct {
	Remote    netip.AddrPort // without a zone
	Scope     uint32         // the index of the interface, with a link-local address
	Local     netip.Addr     // the address that messages to it come from; not valid: the kernel chooses
	Interface uint32         // the index of the interface that they leave by; 0: routes decide
	Held      *Held          // nil: the peer is where its last message came from
	Place     uint8          // of the port that messages leave by and come to, among those of the network; 0: the first
}

// Anyhow returns the endpoint without what says how messages leave: routes decide.
func (e *Endpoint) Anyhow() *Endpoint {
	return &Endpoint{Remote: e.Remote, Scope: e.Scope, Place: e.Place}
}

// ParseEndpoint reads an endpoint as String writes it. Its zone may be the name of an interface that there is now.
func ParseEndpoint(text string) (*Endpoint, error) {
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return nil, err
	}
	e := &Endpoint{}
	if zone := at.Addr().Zone(); zone != "" {
		if e.Scope, err = scopeOf(zone); err != nil {
			return nil, err
		}
	}
	e.Remote = netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
	return e, nil
}

func scopeOf(zone string) (uint32, error) {
	if index, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(index), nil
	}
	l, err := net.InterfaceByName(zone)
	if err != nil {
		return 0, fmt.Errorf("zone %s: %w", zone, err)
	}
	return uint32(l.Index), nil
}

// String returns the endpoint as netip.AddrPort does.
func (e *Endpoint) String() string {
	if e.Scope == 0 {
		return e.Remote.String()
	}
	return netip.AddrPortFrom(e.Remote.Addr().WithZone(strconv.FormatUint(uint64(e.Scope), 10)), e.Remote.Port()).String()
}

// bytes are what a cookie belongs to.
func (e *Endpoint) bytes() []byte {
	b, _ := e.Remote.MarshalBinary()
	return b
}
