package netif

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
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

// Routed is what the routes say of an interface.
type Routed struct {
	Default  bool         // a default route of the main table leaves by it
	Gateways []netip.Addr // of these routes, the first of each family; they may have none
	MTU      int          // the least MTU that a route of any table by it has of its own; 0: none has one
}

// RoutedBy returns what the routes of both families say of interfaces, by index.
func RoutedBy() (map[int]Routed, error) {
	routes, err := dump(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	all := make(map[int]Routed)
	for i := range routes {
		r := &routes[i]
		leaves(all, r, r.LinkIndex, r.Gw)
		for _, hop := range r.MultiPath {
			leaves(all, r, hop.LinkIndex, hop.Gw)
		}
	}
	return all, nil
}

// leaves adds what a route says of the interface of a next hop.
func leaves(all map[int]Routed, r *netlink.Route, index int, by net.IP) {
	isExit := r.Table == unix.RT_TABLE_MAIN && isDefault(r)
	if index == 0 || !isExit && r.MTU == 0 {
		return
	}
	found := all[index]
	if r.MTU > 0 && (found.MTU == 0 || r.MTU < found.MTU) {
		found.MTU = r.MTU
	}
	if isExit {
		found.Default = true
		gateway, ok := netip.AddrFromSlice(by)
		gateway = gateway.Unmap()
		ofFamily := func(a netip.Addr) bool { return a.Is4() == gateway.Is4() }
		if ok && !slices.ContainsFunc(found.Gateways, ofFamily) {
			found.Gateways = append(found.Gateways, gateway)
		}
	}
	all[index] = found
}

func isDefault(r *netlink.Route) bool {
	if r.Dst == nil {
		return true
	}
	ones, _ := r.Dst.Mask.Size()
	return ones == 0
}
