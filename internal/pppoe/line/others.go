package line

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// routesOfOthers returns the IPv4 routes by the device alone, in all tables, that the kernel has not made itself. It removes them with
// the last address of the device, also if another one follows, and tells nobody.
func (d Device) routesOfOthers() ([]netlink.Route, error) {
	filter := &netlink.Route{LinkIndex: d.Index, Table: unix.RT_TABLE_UNSPEC}
	all, err := netlink.RouteListFiltered(netlink.FAMILY_V4, filter, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("list the routes by %s: %w", d.Name, err)
	}
	return slices.DeleteFunc(all, func(r netlink.Route) bool {
		return r.Protocol == unix.RTPROT_KERNEL || r.Table == unix.RT_TABLE_LOCAL
	}), nil
}

// putBack adds routes again that went with addresses. Those whose packets had one of these have the new one. A gateway need not be the new
// session's peer: whatever is sent into a session reaches that.
func putBack(routes []netlink.Route, gone []netlink.Addr, own netip.Addr) error {
	var errs []error
	for i := range routes {
		r := routes[i]
		if slices.ContainsFunc(gone, func(a netlink.Addr) bool { return a.IP.Equal(r.Src) }) {
			r.Src = own.AsSlice()
		}
		r.Flags = 0
		if len(r.Gw) > 0 {
			r.Flags = int(netlink.FLAG_ONLINK)
		}
		if err := netlink.RouteAdd(&r); err != nil && !errors.Is(err, unix.EEXIST) {
			errs = append(errs, fmt.Errorf("put back a route that went with an address (%s): %w", &r, err))
		}
	}
	return errors.Join(errs...)
}

// Lacks reports whether somebody has taken from the device what SetAddresses has given it, or, with routes, SetRoutes. A
// device that is down lacks nothing: nobody can give it routes.
func (d Device) Lacks(a Addresses, order int, routes bool) (bool, error) {
	l, err := netlink.LinkByIndex(d.Index)
	if err != nil || l.Attrs().Flags&net.FlagUp == 0 {
		return false, err
	}
	for _, own := range []netip.Addr{a.IPv4, a.IPv6} {
		has, err := netlink.AddrList(l, familyOf(own))
		if err != nil {
			return false, err
		}
		if own.IsValid() && !slices.ContainsFunc(has, func(a netlink.Addr) bool { return a.IP.Equal(own.AsSlice()) }) {
			return true, nil
		}
	}
	if !routes {
		return false, nil
	}
	for _, route := range d.defaults(a, order) {
		has, err := netlink.RouteListFiltered(route.Family, &route.Route, likeDefault)
		if err != nil {
			return false, err
		}
		if route.wanted && !slices.ContainsFunc(has, func(r netlink.Route) bool { return r.Priority == route.Priority && r.Gw.Equal(route.Gw) }) {
			return true, nil
		}
	}
	return false, nil
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}
