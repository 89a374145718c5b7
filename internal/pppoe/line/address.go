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

	"weir/internal/host/netif"
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
	OnlyIPv6       bool       // the session will have no IPv4 address either
}

// sessionLabel returns the label of a session's IPv4 address that has no peer: others' have none either. For a name that
// is too long for it, it is the kernel's own, and all addresses without a peer count as the session's.
func (d Device) sessionLabel() string {
	label := d.Name + ":s"
	if len(label) >= unix.IFNAMSIZ {
		return d.Name
	}
	return label
}

// SetAddresses gives the device the addresses of its session. Those of an earlier session go,
// except for IPv6 addresses that are not link-local. What others have added stays: addresses without a peer, and routes.
// A session that has no IPv4 address yet leaves that of before. lost says what of others could not be kept.
func (d Device) SetAddresses(a Addresses) (lost, err error) {
	l, err := netlink.LinkByIndex(d.Index)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", d.Name, err)
	}
	lost, err = d.setIPv4(l, a)
	if err := errors.Join(err, setIPv6(l, a)); err != nil {
		return lost, fmt.Errorf("set the addresses of %s: %w", d.Name, err)
	}
	return lost, nil
}

func (d Device) setIPv4(l netlink.Link, a Addresses) (lost, err error) {
	if !a.IPv4.IsValid() && !a.OnlyIPv6 {
		return nil, nil
	}
	has, err := netlink.AddrList(l, netlink.FAMILY_V4)
	if err != nil {
		return nil, err
	}
	var own *netlink.Addr
	if a.IPv4.IsValid() {
		own = &netlink.Addr{IPNet: &net.IPNet{IP: a.IPv4.AsSlice(), Mask: net.CIDRMask(32, 32)}}
		if a.PeerIPv4.IsValid() && a.PeerIPv4 != a.IPv4 { // else the kernel knows of no peer
			own.Peer = &net.IPNet{IP: a.PeerIPv4.AsSlice(), Mask: net.CIDRMask(32, 32)}
		} else {
			own.Label = d.sessionLabel()
		}
	}
	there := false
	var old, others []netlink.Addr
	for i := range has {
		switch is := &has[i]; {
		case own != nil && is.IP.Equal(own.IP) && samePeer(is, own):
			there = true
		case is.Peer != nil || is.Label == d.sessionLabel():
			old = append(old, *is)
		default:
			others = append(others, *is)
		}
	}
	if there || own == nil {
		return nil, each(l, old, without)
	}
	routes, lost := d.routesOfOthers(old)
	// The session's is the first one, as for (ppp0:0) in rules.
	err = errors.Join(each(l, old, without), each(l, others, without), netlink.AddrAdd(l, own))
	return errors.Join(lost, each(l, others, netlink.AddrAdd), d.putBack(routes, old, a.IPv4)), err
}

// without removes an address. With the first one of a network the kernel may remove the others of it.
func without(l netlink.Link, a *netlink.Addr) error {
	if err := netlink.AddrDel(l, a); !errors.Is(err, unix.EADDRNOTAVAIL) {
		return err
	}
	return nil
}

func each(l netlink.Link, all []netlink.Addr, do func(netlink.Link, *netlink.Addr) error) error {
	var errs []error
	for i := range all {
		errs = append(errs, do(l, &all[i]))
	}
	return errors.Join(errs...)
}

func setIPv6(l netlink.Link, a Addresses) error {
	has, err := netlink.AddrList(l, netlink.FAMILY_V6)
	if err != nil {
		return err
	}
	there := false
	var old []netlink.Addr
	for i := range has {
		if a.IPv6.IsValid() && has[i].IP.Equal(a.IPv6.AsSlice()) {
			there = true
		} else if has[i].IP.IsLinkLocalUnicast() {
			old = append(old, has[i])
		}
	}
	err = each(l, old, without)
	if a.IPv6.IsValid() && !there {
		err = errors.Join(err, netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: a.IPv6.AsSlice(), Mask: net.CIDRMask(64, 128)}, Flags: unix.IFA_F_NODAD}))
	}
	return err
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

// AcceptAdvertisements lets the device take its IPv6 addresses from router advertisements, although the box forwards. With the next
// link-local address the kernel then asks for routers. The default route is SetRoutes': one that an advertisement has made, which an earlier
// version took, goes.
func (d Device) AcceptAdvertisements() error {
	for _, set := range []struct{ name, value string }{{"accept_ra_defrtr", "0"}, {"accept_ra", "2"}} {
		err := os.WriteFile(filepath.Join("/proc/sys/net/ipv6/conf", d.Name, set.name), []byte(set.value), 0)
		if errors.Is(err, os.ErrNotExist) {
			return nil // no IPv6 here
		}
		if err != nil {
			return err
		}
	}
	return d.dropAdvertised()
}

// dropAdvertised removes the default routes that router advertisements have made.
func (d Device) dropAdvertised() error {
	advertised := &netlink.Route{LinkIndex: d.Index, Dst: nil, Protocol: unix.RTPROT_RA, Table: unix.RT_TABLE_MAIN}
	all, err := netif.Dump(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_V6, advertised, netlink.RT_FILTER_OIF|netlink.RT_FILTER_DST|netlink.RT_FILTER_PROTOCOL)
	})
	errs := []error{err}
	for i := range all {
		if err := netlink.RouteDel(&all[i]); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove the default routes by %s that were advertised: %w", d.Name, err)
	}
	return nil
}
