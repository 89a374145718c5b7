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

// routesOfOthers returns the IPv4 routes of all tables that the kernel may remove with the addresses that go, and has not made itself: those
// by the device with its last address, also if another one follows, and those whose packets have one of these. It tells nobody. Routes by
// several devices stay without those, and routes by nexthop objects.
func (d Device) routesOfOthers(gone []netlink.Addr) (all []route, err error) {
	all, err = routes(unix.AF_INET, func(r route) bool {
		return r.family() == unix.AF_INET && (r.by(d.Index) || hasSource(r, gone))
	})
	if err != nil {
		return all, fmt.Errorf("list the routes by %s: %w", d.Name, err)
	}
	return all, nil
}

// hasSource reports whether packets by a route have one of some addresses.
func hasSource(r route, addresses []netlink.Addr) bool {
	a := find(r.attributes, unix.RTA_PREFSRC)
	return a != nil && slices.ContainsFunc(addresses, func(is netlink.Addr) bool { return is.IP.Equal(a.value()) })
}

// putBack adds routes again that went with addresses. Those whose packets had one of these have the new one.
func (d Device) putBack(routes []route, gone []netlink.Addr, own netip.Addr) error {
	var errs []error
	for _, r := range routes {
		source := same
		if hasSource(r, gone) {
			source = func([]byte) []byte { return own.AsSlice() }
		}
		if err := r.putBack(d.Index, source); err != nil {
			errs = append(errs, fmt.Errorf("put back a route that went with an address (%s): %w", r.network(), err))
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
