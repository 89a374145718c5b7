package rundir

import (
	"net/netip"

	"weir/internal/host/netif"
)

// Interface is one interface and the hook that filters its packets.
type Interface struct {
	Name      string         `json:"name"`
	Groups    []string       `json:"groups"`
	Addresses []netip.Prefix `json:"addresses"`               // in the interface's order
	Peers     []netip.Addr   `json:"peers,omitempty"`         // the other ends of its point-to-point links
	Default   []netip.Addr   `json:"default_route,omitempty"` // the gateways of its default routes
	Index     int            `json:"index"`
	Kind      string         `json:"kind"` // physical, or the kernel's name of the kind
	Up        bool           `json:"up"`
	Hook      string         `json:"hook"`             // xdp, tcx or none
	Mode      string         `json:"mode,omitempty"`   // for hook xdp: native, or parent: the program of the device below handles its frames
	Why       string         `json:"why"`              // why this hook
	Driver    string         `json:"driver,omitempty"` // "" for devices without one
	Queues    int            `json:"queues"`           // receive queues in use
	MTU       int            `json:"mtu"`              // bytes
	Spread    string         `json:"spread,omitempty"` // set spread: what the frames that come in do, and why
	Skip      bool           `json:"skip,omitempty"`   // set skip on
}

// NewInterface returns an Interface with what is known from the machine.
func NewInterface(l *netif.Link, groups []string) Interface {
	n := Interface{
		Name: l.Name, Groups: groups, Addresses: []netip.Prefix{},
		Index: l.Index, Kind: string(l.Kind), Up: l.Up,
		Driver: netif.Driver(l.Name), Queues: netif.Queues(l), MTU: l.MTU,
	}
	for _, a := range l.Addresses {
		n.Addresses = append(n.Addresses, a.Prefix)
		if a.Peer.IsValid() {
			n.Peers = append(n.Peers, a.Peer)
		}
	}
	return n
}
