package netif

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A Route is a route of the main table, as weir check --expect uses it.
type Route struct {
	To        netip.Prefix
	Interface string
	Gateway   netip.Addr // invalid: destinations are on the link
	metric    int
	refused   bool // blackhole, unreachable, prohibit
}

// RouteTable holds routes in the order in which they are tried.
type RouteTable []Route

// Routes reads the main routing tables of both families. Of several next hops it returns
// the first. It ignores policy routing rules.
func Routes() (RouteTable, error) {
	links, err := Links()
	if err != nil {
		return nil, err
	}
	names := make(map[int]string)
	for _, l := range links {
		names[l.Index] = l.Name
	}
	var table RouteTable
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := Dump(func() ([]netlink.Route, error) { return netlink.RouteList(nil, family) })
		if err != nil {
			return nil, fmt.Errorf("list routes: %w", err)
		}
		for i := range routes {
			table = append(table, newRoute(&routes[i], family, names))
		}
	}
	slices.SortStableFunc(table, func(a, b Route) int {
		return cmp.Or(b.To.Bits()-a.To.Bits(), a.metric-b.metric)
	})
	return table, nil
}

func newRoute(r *netlink.Route, family int, names map[int]string) Route {
	route := Route{To: netip.PrefixFrom(netip.IPv4Unspecified(), 0), metric: r.Priority}
	if family == netlink.FAMILY_V6 {
		route.To = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	if r.Dst != nil {
		to, _ := netip.AddrFromSlice(r.Dst.IP)
		ones, bits := r.Dst.Mask.Size()
		if bits == 32 {
			to = to.Unmap()
		}
		route.To = netip.PrefixFrom(to, ones)
	}
	index, gateway := r.LinkIndex, r.Gw
	if len(r.MultiPath) > 0 {
		index, gateway = r.MultiPath[0].LinkIndex, r.MultiPath[0].Gw
	}
	route.Interface, route.Gateway = names[index], address(gateway)
	if via, ok := r.Via.(*netlink.Via); ok && gateway == nil {
		route.Gateway = address(via.Addr)
	}
	switch r.Type {
	case unix.RTN_BLACKHOLE, unix.RTN_UNREACHABLE, unix.RTN_PROHIBIT:
		route.refused = true
	}
	return route
}

func address(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// To returns the route to a destination, false if there is none.
func (t RouteTable) To(dst netip.Addr) (Route, bool) {
	for _, r := range t {
		if r.To.Contains(dst) {
			return r, !r.refused && r.Interface != ""
		}
	}
	return Route{}, false
}
