package netif

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"weir/internal/names"
	"weir/pf/resolve"
)

// Egress is the group of the interfaces that a default route leaves by.
const Egress = "egress"

// Host is what the resolver asks about this machine.
func Host(links []Link) (*resolve.Host, error) {
	egress, err := DefaultRoutes()
	if err != nil {
		return nil, err
	}
	named, err := names.LinkGroups(os.DirFS("/"))
	if err != nil {
		return nil, err
	}
	host := &resolve.Host{}
	for _, l := range links {
		addresses := make([]netip.Prefix, 0, len(l.Addresses))
		var peers []netip.Addr
		for _, a := range l.Addresses {
			addresses = append(addresses, a.Prefix)
			if a.Peer.IsValid() {
				peers = append(peers, a.Peer)
			}
		}
		host.Interfaces = append(host.Interfaces, resolve.HostInterface{
			Name: l.Name, Groups: Groups(&l, egress[l.Index], named[l.Group]), Addresses: addresses, Peers: peers,
		})
	}
	return host, nil
}

// Groups are the names under which rules may speak of a link besides its own:
// its name without the number (pf: the driver's), its driver or kind, egress
// where a default route leaves by it, and named, what iproute2 calls its group,
// "" for none.
func Groups(l *Link, egress bool, named string) []string {
	groups := []string{}
	add := func(name string) {
		if name != "" && name != l.Name && !slices.Contains(groups, name) {
			groups = append(groups, name)
		}
	}
	add(strings.TrimRight(l.Name, "0123456789"))
	if l.Kind == Physical {
		add(Driver(l.Name))
	} else {
		add(string(l.Kind))
	}
	if egress {
		add(Egress)
	}
	add(named)
	return groups
}

// DefaultRoutes gives the indices of the interfaces that a default route of
// either family leaves by.
func DefaultRoutes() (map[int]bool, error) {
	routes, err := dump(func() ([]netlink.Route, error) { return netlink.RouteList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	indices := make(map[int]bool)
	for _, r := range routes {
		if !isDefault(&r) {
			continue
		}
		if r.LinkIndex != 0 {
			indices[r.LinkIndex] = true
		}
		for _, hop := range r.MultiPath {
			indices[hop.LinkIndex] = true
		}
	}
	return indices, nil
}

func isDefault(r *netlink.Route) bool {
	if r.Dst == nil {
		return true
	}
	ones, _ := r.Dst.Mask.Size()
	return ones == 0
}
