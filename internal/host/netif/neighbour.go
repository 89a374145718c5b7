package netif

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Neighbour identifies a station on a link.
type Neighbour struct {
	Link int // index
	Addr netip.Addr
}

// settled are the states of neighbours whose link-layer address the kernel has learned,
// so it can check the address.
const settled = unix.NUD_REACHABLE | unix.NUD_STALE | unix.NUD_DELAY

// ProbeNeighbours makes the kernel probe the wanted neighbours. The kernel never sees
// what XDP forwards, so it would not probe them by itself. Permanent neighbours, and
// those that the kernel does not know (any more), are left alone.
func ProbeNeighbours(wanted map[Neighbour]bool) error {
	if len(wanted) == 0 {
		return nil
	}
	all, err := Dump(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("list neighbours: %w", err)
	}
	for i := range all {
		n := &all[i]
		ip, ok := netip.AddrFromSlice(n.IP)
		if !ok || n.State&settled == 0 || !wanted[Neighbour{n.LinkIndex, ip.Unmap()}] {
			continue
		}
		if err := probe(n); err != nil {
			return fmt.Errorf("probe neighbour %s: %w", ip, err)
		}
	}
	return nil
}

func probe(n *netlink.Neigh) error {
	err := netlink.NeighSet(&netlink.Neigh{
		LinkIndex: n.LinkIndex, Family: n.Family, State: unix.NUD_PROBE,
		Flags: n.Flags, IP: n.IP, HardwareAddr: n.HardwareAddr,
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return nil // removed in the meantime
	}
	return err
}

// A NeighbourState is what the kernel knows of a neighbour.
type NeighbourState struct {
	MAC     net.HardwareAddr // nil: unknown
	Answers bool             // it has answered since the kernel last asked it, or its address is set by hand
	set     bool             // by hand
	flags   int
}

// Neighbours lists the neighbours of all links.
func Neighbours() (map[Neighbour]NeighbourState, error) {
	all, err := Dump(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list neighbours: %w", err)
	}
	found := make(map[Neighbour]NeighbourState)
	for i := range all {
		n := &all[i]
		ip, ok := netip.AddrFromSlice(n.IP)
		if !ok {
			continue
		}
		s := NeighbourState{flags: n.Flags, set: n.State&(unix.NUD_PERMANENT|unix.NUD_NOARP) != 0}
		if n.State&(unix.NUD_FAILED|unix.NUD_INCOMPLETE) == 0 {
			s.MAC = n.HardwareAddr
		}
		s.Answers = s.set || n.State&unix.NUD_REACHABLE != 0
		found[Neighbour{n.LinkIndex, ip.Unmap()}] = s
	}
	return found, nil
}

// AskNeighbour makes the kernel ask a neighbour for its link-layer address. known is what
// Neighbours has returned. An address that was set by hand is not asked for.
func AskNeighbour(n Neighbour, known map[Neighbour]NeighbourState) error {
	s := known[n]
	if s.set {
		return nil
	}
	ask := &netlink.Neigh{LinkIndex: n.Link, IP: n.Addr.AsSlice(), State: unix.NUD_PROBE, Flags: s.flags, HardwareAddr: s.MAC}
	if s.MAC == nil {
		ask.State, ask.Flags = unix.NUD_NONE, unix.NTF_USE
	}
	err := netlink.NeighSet(ask)
	if errors.Is(err, unix.ENODEV) {
		return errors.New("the interface is gone")
	}
	if err != nil {
		return fmt.Errorf("ask for the neighbour %s: %w", n.Addr, err)
	}
	return nil
}

// WayTo returns the link to a host and the neighbour that packets for it are sent to, by
// the kernel's routes.
func WayTo(host netip.Addr) (link int, via netip.Addr, err error) {
	routes, err := netlink.RouteGet(host.AsSlice())
	if err != nil || len(routes) == 0 {
		return 0, via, fmt.Errorf("look up the route to %s: %w", host, err)
	}
	if via = address(routes[0].Gw); !via.IsValid() {
		via = host
	}
	return routes[0].LinkIndex, via, nil
}

// SourceTo returns the link to a host and the address that this machine's packets to it have, by the kernel's routes.
func SourceTo(host netip.Addr) (link int, source netip.Addr, err error) {
	routes, err := netlink.RouteGet(host.AsSlice())
	if err != nil || len(routes) == 0 {
		return 0, source, fmt.Errorf("look up the route to %s: %w", host, err)
	}
	return routes[0].LinkIndex, address(routes[0].Src), nil
}
