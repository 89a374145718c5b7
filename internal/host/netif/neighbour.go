package netif

import (
	"errors"
	"fmt"
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
	all, err := dump(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, netlink.FAMILY_ALL) })
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
