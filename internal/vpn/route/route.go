package route

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
)

// Protocol is what weir's routes of tunnels are known by.
const Protocol netlink.RouteProtocol = 119

// Metrics of the routes. What an administrator puts between the first two is a way around a tunnel.
const (
	metric          = 20
	blackholeMetric = 30
	connectedMetric = 300 // of blackholes behind the kernel's own routes, which have 256 with IPv6
)

// Block adds those blackholes that are missing.
func Block(holes []Blackhole) error {
	if len(holes) == 0 {
		return nil
	}
	there, _ := list() //nolint:errcheck // what is there may be added once more
	var errs []error
	for _, h := range holes {
		if slices.ContainsFunc(there, func(r netlink.Route) bool { return r.Type == unix.RTN_BLACKHOLE && holeOf(&r) == h }) {
			continue
		}
		r := newRoute(h.To, h.Metric)
		r.Type = unix.RTN_BLACKHOLE
		if err := netlink.RouteReplace(r); err != nil {
			errs = append(errs, fmt.Errorf("add the blackhole of %s: %w", h.To, err))
		}
	}
	return errors.Join(errs...)
}

// Unblock removes all blackholes but those that it keeps.
func Unblock(keep []Blackhole) error {
	return remove(func(r *netlink.Route) bool { return r.Type == unix.RTN_BLACKHOLE && !slices.Contains(keep, holeOf(r)) })
}

// Drop removes some blackholes.
func Drop(holes []Blackhole) error {
	if len(holes) == 0 {
		return nil
	}
	return remove(func(r *netlink.Route) bool { return r.Type == unix.RTN_BLACKHOLE && slices.Contains(holes, holeOf(r)) })
}

// Lead has the networks be reached through an interface, and no others of weir's routes lead there.
func Lead(index int, networks []netip.Prefix) error {
	leads := func(r *netlink.Route) bool { return r.Type != unix.RTN_BLACKHOLE && r.LinkIndex == index }
	there, err := list() // what is there and not listed may be added once more
	errs := []error{err, removeFrom(there, func(r *netlink.Route) bool { return leads(r) && !slices.Contains(networks, prefixOf(r)) })}
	for _, n := range networks {
		if slices.ContainsFunc(there, func(r netlink.Route) bool { return leads(&r) && holeOf(&r) == Blackhole{n, metric} }) {
			continue
		}
		r := newRoute(n, metric)
		r.LinkIndex, r.Scope = index, netlink.SCOPE_LINK
		if n.Addr().Is6() {
			r.Scope = netlink.SCOPE_UNIVERSE
		}
		if err := netlink.RouteReplace(r); err != nil {
			errs = append(errs, fmt.Errorf("add the route to %s: %w", n, err))
		}
	}
	return errors.Join(errs...)
}

func newRoute(n netip.Prefix, metric int) *netlink.Route {
	return &netlink.Route{Family: familyOf(n), Dst: Net(n), Priority: metric, Protocol: Protocol}
}

func familyOf(n netip.Prefix) int {
	if n.Addr().Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}

// Net returns a prefix as netlink has it.
func Net(n netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: n.Addr().AsSlice(), Mask: net.CIDRMask(n.Bits(), n.Addr().BitLen())}
}

// routeList is netlink's. Tests have it fail.
var routeList = netlink.RouteListFiltered

// list returns weir's routes, as far as they can be listed. If the kernel's table changes during each attempt, some may be missing: that is an
// error.
func list() (all []netlink.Route, err error) {
	var errs []error
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		some, err := netif.Dump(func() ([]netlink.Route, error) {
			return routeList(family, &netlink.Route{Protocol: Protocol}, netlink.RT_FILTER_PROTOCOL)
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("list the routes of tunnels: %w", err))
		}
		all = append(all, some...)
	}
	return all, errors.Join(errs...)
}

// remove removes those of weir's routes that are chosen.
func remove(chosen func(*netlink.Route) bool) error {
	all, err := list()
	return errors.Join(err, removeFrom(all, chosen))
}

// removeFrom removes those of some routes that are chosen.
func removeFrom(all []netlink.Route, chosen func(*netlink.Route) bool) error {
	var errs []error
	for i := range all {
		if r := &all[i]; chosen(r) {
			if err := netlink.RouteDel(r); err != nil && !errors.Is(err, unix.ESRCH) {
				errs = append(errs, fmt.Errorf("remove a route of a tunnel: %w", err))
			}
		}
	}
	return errors.Join(errs...)
}

func holeOf(r *netlink.Route) Blackhole { return Blackhole{prefixOf(r), r.Priority} }

func prefixOf(r *netlink.Route) netip.Prefix {
	if r.Dst == nil {
		return netip.Prefix{}
	}
	a, _ := netip.AddrFromSlice(r.Dst.IP)
	bits, _ := r.Dst.Mask.Size()
	return netip.PrefixFrom(a.Unmap(), bits)
}
