// Package route has the routes of tunnels. Behind each stands a blackhole of a higher metric. It
// belongs to no interface, so it stays when the tunnel's interface is down or gone: what is meant for
// the tunnel is then dropped, and does not leave by another route in clear.
//
// weir's routes are known by their protocol. Whoever adds the blackholes does so before the rules
// that need them are in force, and removes them after.
package route

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Protocol is what weir's routes of tunnels are known by.
const Protocol netlink.RouteProtocol = 119

// Metrics of the routes. What an administrator puts between them is a way around a tunnel.
const (
	metric          = 20
	blackholeMetric = 30
)

// Block adds the blackholes of networks.
func Block(networks []netip.Prefix) error {
	var errs []error
	for _, n := range networks {
		r := newRoute(n, blackholeMetric)
		r.Type = unix.RTN_BLACKHOLE
		if err := netlink.RouteReplace(r); err != nil {
			errs = append(errs, fmt.Errorf("add the blackhole of %s: %w", n, err))
		}
	}
	return errors.Join(errs...)
}

// Unblock removes the blackholes of all networks but those that it keeps.
func Unblock(keep []netip.Prefix) error {
	return remove(keep, func(r *netlink.Route) bool { return r.Type == unix.RTN_BLACKHOLE })
}

// Lead has the networks be reached through an interface, and no others of weir's routes lead there.
func Lead(index int, networks []netip.Prefix) error {
	errs := []error{remove(networks, func(r *netlink.Route) bool { return r.Type != unix.RTN_BLACKHOLE && r.LinkIndex == index })}
	for _, n := range networks {
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

// remove removes those of weir's routes that are chosen, except to the networks that it keeps.
func remove(keep []netip.Prefix, chosen func(*netlink.Route) bool) error {
	var errs []error
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		all, err := netlink.RouteListFiltered(family, &netlink.Route{Protocol: Protocol}, netlink.RT_FILTER_PROTOCOL)
		if err != nil {
			errs = append(errs, fmt.Errorf("list the routes of tunnels: %w", err))
		}
		for i := range all {
			if r := &all[i]; chosen(r) && !slices.Contains(keep, prefixOf(r)) {
				if err := netlink.RouteDel(r); err != nil && !errors.Is(err, unix.ESRCH) {
					errs = append(errs, fmt.Errorf("remove a route of a tunnel: %w", err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

func prefixOf(r *netlink.Route) netip.Prefix {
	if r.Dst == nil {
		return netip.Prefix{}
	}
	a, _ := netip.AddrFromSlice(r.Dst.IP)
	bits, _ := r.Dst.Mask.Size()
	return netip.PrefixFrom(a.Unmap(), bits)
}
