package line

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/pppoe/advertise"
)

// unreachablePriority is the metric of the routes of delegated prefixes: the least urgent of all, so
// that every other route to a part of one goes before.
const unreachablePriority = 0x7fffffff

// SetDelegated gives an interface the first address of each prefix, for as long as it is valid, and
// takes away those of prefixes that are gone.
func SetDelegated(name string, prefixes []advertise.Prefix, gone []netip.Prefix) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	has, err := netlink.AddrList(l, netlink.FAMILY_V6)
	if err != nil {
		return fmt.Errorf("list the addresses of %s: %w", name, err)
	}
	var errs []error
	for _, p := range prefixes {
		wanted := delegated(p.Prefix)
		wanted.PreferedLft, wanted.ValidLft = seconds(p.Preferred), seconds(p.Valid)
		if wanted.ValidLft == 0 {
			continue // its time has just come, and 0 would mean for ever
		}
		if p.Preferred.IsZero() && p.Valid.IsZero() {
			wanted.PreferedLft, wanted.ValidLft = 0, 0 // the kernel's word for both
		}
		if !hasAddress(has, wanted) {
			errs = append(errs, netlink.AddrReplace(l, wanted))
		}
	}
	for _, p := range gone {
		a := delegated(p)
		for i := range has {
			if has[i].IP.Equal(a.IP) {
				// The kernel leaves the route of an address with a lifetime.
				err := netlink.RouteDel(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: &net.IPNet{IP: p.Addr().AsSlice(), Mask: a.Mask}, Protocol: unix.RTPROT_KERNEL, Family: netlink.FAMILY_V6})
				if errors.Is(err, unix.ESRCH) {
					err = nil
				}
				errs = append(errs, err, netlink.AddrDel(l, &has[i]))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("set the addresses of %s: %w", name, err)
	}
	return nil
}

// delegated is the box's own address in a prefix.
func delegated(p netip.Prefix) *netlink.Addr {
	ip := p.Addr().As16()
	ip[15] = 1
	return &netlink.Addr{IPNet: &net.IPNet{IP: ip[:], Mask: net.CIDRMask(p.Bits(), 128)}}
}

// lifetimeSlack is by how many seconds a lifetime may be off: it is counted in whole ones.
const lifetimeSlack = 2

func hasAddress(has []netlink.Addr, wanted *netlink.Addr) bool {
	near := func(a, b int) bool { return a == b || max(a-b, b-a) <= lifetimeSlack }
	for i := range has {
		if !has[i].IP.Equal(wanted.IP) {
			continue
		}
		if wanted.ValidLft == 0 {
			return has[i].ValidLft == forever
		}
		return near(has[i].ValidLft, wanted.ValidLft) && near(has[i].PreferedLft, wanted.PreferedLft)
	}
	return false
}

// forever is the kernel's lifetime without end.
const forever = 0xffffffff

// seconds is the time until t.
func seconds(t time.Time) int {
	if t.IsZero() {
		return forever
	}
	return max(int(time.Until(t)/time.Second), 0)
}

func unreachable(p netip.Prefix) *netlink.Route {
	return &netlink.Route{
		Dst: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 128)}, Type: unix.RTN_UNREACHABLE,
		Priority: unreachablePriority, Protocol: routeProtocol, Family: netlink.FAMILY_V6,
	}
}

// AddUnreachable has packets answered that are for a part of a prefix which no interface has: by the
// default route they would go back to the provider, and come again.
func AddUnreachable(p netip.Prefix) error {
	route := unreachable(p)
	has, err := netlink.RouteListFiltered(netlink.FAMILY_V6, route, netlink.RT_FILTER_DST|netlink.RT_FILTER_TYPE|netlink.RT_FILTER_PROTOCOL)
	if err == nil && len(has) > 0 {
		return nil // a replacement would have the dataplane look all routes up again
	}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("add an unreachable route for %s: %w", p, err)
	}
	return nil
}

// RemoveUnreachable removes what AddUnreachable has added.
func RemoveUnreachable(p netip.Prefix) error {
	if err := netlink.RouteDel(unreachable(p)); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("remove the unreachable route for %s: %w", p, err)
	}
	return nil
}
