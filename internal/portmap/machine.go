package portmap

import (
	"bytes"
	"fmt"
	"net/netip"

	"weir/internal/host/netif"
	"weir/internal/portmap/igd"
)

// A Machine is the network namespace that the server runs in.
type Machine struct{ watcher *netif.Watcher }

// NewMachine begins to watch the namespace.
func NewMachine() (*Machine, error) {
	w, err := netif.Watch()
	return &Machine{w}, err
}

// Of returns an interface with its addresses.
func (*Machine) Of(name string) (n Network, err error) {
	links, err := netif.Links()
	if err != nil {
		return n, err
	}
	for _, l := range links {
		if l.Name != name {
			continue
		}
		n = Network{Name: name, Index: l.Index, MAC: l.MAC.String()}
		for _, a := range l.Addresses {
			if !a.Tentative {
				n.Networks = append(n.Networks, netip.PrefixFrom(a.Prefix.Addr().WithZone(""), a.Prefix.Bits()))
			}
		}
		return n, nil
	}
	return n, fmt.Errorf("there is no interface %s", name)
}

// Next waits until links or addresses have changed.
func (m *Machine) Next() error {
	for {
		change, err := m.watcher.Next()
		if err != nil || change&(netif.ChangedLinks|netif.ChangedAddresses) != 0 {
			return err
		}
	}
}

// Close ends a waiting Next.
func (m *Machine) Close() { m.watcher.Close() }

// Same reports whether two neighbours on an interface have one link-layer address.
func (*Machine) Same(index int, a, b netip.Addr) bool {
	known, err := netif.Neighbours()
	if err != nil {
		return false
	}
	one, other := known[netif.Neighbour{Link: index, Addr: a}].MAC, known[netif.Neighbour{Link: index, Addr: b}].MAC
	return len(one) > 0 && bytes.Equal(one, other)
}

// Traffic returns what an interface has counted; nothing if there is none.
func (*Machine) Traffic(name string) igd.Traffic {
	c, err := netif.CountersOf(name)
	if err != nil {
		return igd.Traffic{}
	}
	return igd.Traffic{BytesSent: c.BytesSent, BytesReceived: c.BytesReceived, PacketsSent: c.PacketsSent, PacketsReceived: c.PacketsReceived}
}
