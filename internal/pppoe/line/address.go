package line

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// routePriority is the metric of the first interface's default routes. The next interface has the next one:
// the kernel would take a second route of the same metric for another way of the first.
const (
	routePriority = 20
	mostOrders    = 512 // no more sessions fit into the maps
)

// routeProtocol is that of routes which an administrator adds.
const routeProtocol = 4

// Addresses are those of a session.
type Addresses struct {
	IPv4, PeerIPv4 netip.Addr // not valid: none
	IPv6, PeerIPv6 netip.Addr // link-local
}

// SetAddresses gives the device the addresses of its session. Those of an earlier session go,
// except for IPv6 addresses that are not link-local. Routes that others have added stay.
func (d Device) SetAddresses(a Addresses) error {
	l, err := netlink.LinkByIndex(d.Index)
	if err != nil {
		return fmt.Errorf("find %s: %w", d.Name, err)
	}
	var errs []error
	var gone []net.IP // of IPv4
	var others []netlink.Route
	for _, family := range []struct {
		number     int
		own, peer  netip.Addr
		bits, most int
	}{{netlink.FAMILY_V4, a.IPv4, a.PeerIPv4, 32, 32}, {netlink.FAMILY_V6, a.IPv6, netip.Addr{}, 64, 128}} {
		has, err := netlink.AddrList(l, family.number)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		var wanted *netlink.Addr
		if family.own.IsValid() {
			wanted = &netlink.Addr{IPNet: &net.IPNet{IP: family.own.AsSlice(), Mask: net.CIDRMask(family.bits, family.most)}, Flags: unix.IFA_F_NODAD}
			if family.peer.IsValid() {
				wanted.Peer = &net.IPNet{IP: family.peer.AsSlice(), Mask: net.CIDRMask(32, 32)}
			}
		}
		for i := range has {
			if wanted != nil && has[i].IP.Equal(wanted.IP) && samePeer(&has[i], wanted) {
				wanted = nil
			} else if family.number == netlink.FAMILY_V4 || has[i].IP.IsLinkLocalUnicast() {
				if family.number == netlink.FAMILY_V4 {
					if len(gone) == 0 && family.own.IsValid() {
						others, err = d.routesOfOthers()
						errs = append(errs, err)
					}
					gone = append(gone, has[i].IP)
				}
				errs = append(errs, netlink.AddrDel(l, &has[i]))
			}
		}
		if wanted != nil {
			errs = append(errs, netlink.AddrAdd(l, wanted))
		}
	}
	errs = append(errs, putBack(others, gone, a.IPv4))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("set the addresses of %s: %w", d.Name, err)
	}
	return nil
}

// Deprecate has the device use the IPv6 addresses that routers of an earlier session have advertised for no new connection, until one
// of this session advertises them.
func (d Device) Deprecate() error {
	l, err := netlink.LinkByIndex(d.Index)
	if err != nil {
		return fmt.Errorf("find %s: %w", d.Name, err)
	}
	has, err := netlink.AddrList(l, netlink.FAMILY_V6)
	for i := range has {
		a := &has[i]
		if a.Flags&unix.IFA_F_PERMANENT != 0 || a.IP.IsLinkLocalUnicast() || a.PreferedLft == 0 {
			continue // somebody has set it, or it is not used any more
		}
		a.PreferedLft = 0
		if a.ValidLft == forever {
			a.ValidLft = forever - 1 // else the kernel takes it for one that somebody has set
		}
		err = errors.Join(err, netlink.AddrReplace(l, a))
	}
	if err != nil {
		return fmt.Errorf("deprecate the addresses of %s: %w", d.Name, err)
	}
	return nil
}

func samePeer(a, b *netlink.Addr) bool {
	peer := func(a *netlink.Addr) net.IP {
		if a.Peer == nil {
			return a.IP
		}
		return a.Peer.IP
	}
	return peer(a).Equal(peer(b))
}

// SetRoutes adds default routes of the families of a, and removes others that it has added to
// this device. Those of a lower order go before. The gateway is the peer: the kernel then knows one neighbour,
// not each host.
func (d Device) SetRoutes(a Addresses, order int) error {
	var errs []error
	for _, route := range d.defaults(a, order) {
		// The order may have changed since.
		has, err := netlink.RouteListFiltered(route.Family, &route.Route, likeDefault)
		errs = append(errs, err)
		for i := range has {
			if n := has[i].Priority; n >= routePriority && n < routePriority+mostOrders && (n != route.Priority || !route.wanted) {
				errs = append(errs, netlink.RouteDel(&has[i]))
			}
		}
		if route.wanted {
			errs = append(errs, netlink.RouteReplace(&route.Route))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("set the default routes of %s: %w", d.Name, err)
	}
	return nil
}

// defaultRoute is one of a family, which is wanted if the session has that.
type defaultRoute struct {
	netlink.Route
	wanted bool
}

// likeDefault chooses the default routes that weir has added to a device.
const likeDefault = netlink.RT_FILTER_OIF | netlink.RT_FILTER_DST | netlink.RT_FILTER_PROTOCOL

func (d Device) defaults(a Addresses, order int) (all []defaultRoute) {
	for _, family := range []struct {
		number    int
		own, peer netip.Addr
		none      net.IP
		most      int
	}{{netlink.FAMILY_V4, a.IPv4, a.PeerIPv4, net.IPv4zero.To4(), 32}, {netlink.FAMILY_V6, a.IPv6, a.PeerIPv6, net.IPv6zero, 128}} {
		route := netlink.Route{
			LinkIndex: d.Index, Dst: &net.IPNet{IP: family.none, Mask: net.CIDRMask(0, family.most)},
			Priority: routePriority + order, Protocol: routeProtocol, Family: family.number,
		}
		if family.peer.IsValid() {
			route.Gw, route.Flags = family.peer.AsSlice(), int(netlink.FLAG_ONLINK)
		} else {
			route.Scope = netlink.SCOPE_LINK
		}
		all = append(all, defaultRoute{route, family.own.IsValid()})
	}
	return all
}

// AcceptAdvertisements lets the device take its IPv6 addresses from router advertisements,
// although the box forwards.
func (d Device) AcceptAdvertisements() error {
	err := os.WriteFile(filepath.Join("/proc/sys/net/ipv6/conf", d.Name, "accept_ra"), []byte("2"), 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // no IPv6 here
	}
	return err
}
