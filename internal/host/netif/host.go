package netif

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
)

// Egress is the group of interfaces with a default route.
const Egress = "egress"

// Groups returns the names that rules may use for a link besides its own name: its name
// without the number (pf: the driver's), its driver or kind, egress if it has a default
// route, and named, iproute2's name of its group, "" for none.
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

// DefaultRoutes returns the interfaces of the default routes of both families, by index,
// each with the first gateway of each family. An interface whose routes have no gateway
// has none.
func DefaultRoutes() (map[int][]netip.Addr, error) {
	routes, err := Dump(func() ([]netlink.Route, error) { return netlink.RouteList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	gateways := make(map[int][]netip.Addr)
	leaves := func(index int, by net.IP) {
		if index == 0 {
			return
		}
		found := gateways[index]
		gateway, ok := netip.AddrFromSlice(by)
		gateway = gateway.Unmap()
		ofFamily := func(a netip.Addr) bool { return a.Is4() == gateway.Is4() }
		if ok && !slices.ContainsFunc(found, ofFamily) {
			found = append(found, gateway)
		}
		gateways[index] = found
	}
	for _, r := range routes {
		if !isDefault(&r) {
			continue
		}
		leaves(r.LinkIndex, r.Gw)
		for _, hop := range r.MultiPath {
			leaves(hop.LinkIndex, hop.Gw)
		}
	}
	return gateways, nil
}

func isDefault(r *netlink.Route) bool {
	if r.Dst == nil {
		return true
	}
	ones, _ := r.Dst.Mask.Size()
	return ones == 0
}
