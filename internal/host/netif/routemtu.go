package netif

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// A RouteMTU is a route with an MTU of its own that is not locked, or one way of several.
type RouteMTU struct {
	Network netip.Prefix
	Link    int
	Gateway netip.Addr // not valid: hosts of the network are on the link
	MTU     uint32
}

// RouteMTUs returns those of all routing tables.
func RouteMTUs() (all []RouteMTU, err error) {
	request := nl.NewNetlinkRequest(unix.RTM_GETROUTE, unix.NLM_F_DUMP) // of both families
	request.AddData(&nl.RtMsg{})
	var wrong error
	err = request.ExecuteIter(unix.NETLINK_ROUTE, unix.RTM_NEWROUTE, func(m []byte) bool {
		if !hasMTU(m) { // there may be a million
			return true
		}
		some, err := routeMTUs(m)
		all, wrong = append(all, some...), err
		return err == nil
	})
	if err == nil {
		err = wrong
	}
	if err != nil {
		return nil, fmt.Errorf("list routes with an MTU: %w", err)
	}
	return all, nil
}

// routeHead is the length of struct rtmsg. Attributes follow.
const routeHead = unix.SizeofRtMsg

// isRoute reports whether a message is about a route, and not about what the kernel has learned of one.
func isRoute(m []byte) bool {
	return len(m) >= routeHead && (m[0] == unix.AF_INET || m[0] == unix.AF_INET6) && binary.NativeEndian.Uint32(m[8:])&unix.RTM_F_CLONED == 0
}

// hasMTU reports whether a message is about a route with an MTU.
func hasMTU(m []byte) bool {
	return isRoute(m) && attribute(attribute(m[routeHead:], unix.RTA_METRICS), unix.RTAX_MTU) != nil
}

// attribute returns what the attribute of a kind says, without any allocation; nil: there is none.
func attribute(all []byte, kind uint16) []byte {
	for len(all) >= unix.SizeofRtAttr {
		length := int(binary.NativeEndian.Uint16(all))
		if length < unix.SizeofRtAttr || length > len(all) {
			return nil
		}
		if binary.NativeEndian.Uint16(all[2:])&^unix.NLA_F_NESTED == kind {
			return all[unix.SizeofRtAttr:length]
		}
		all = all[min((length+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1), len(all)):]
	}
	return nil
}

// network returns the network of a message about a route.
func network(m []byte) netip.Prefix {
	a, ok := netip.AddrFromSlice(attribute(m[routeHead:], unix.RTA_DST))
	switch {
	case !ok && m[0] == unix.AF_INET:
		a = netip.IPv4Unspecified()
	case !ok:
		a = netip.IPv6Unspecified()
	}
	return netip.PrefixFrom(a, int(m[1]))
}

// routeMTUs reads a message about a route.
func routeMTUs(m []byte) (all []RouteMTU, err error) {
	metrics := attribute(m[routeHead:], unix.RTA_METRICS)
	if lock := attribute(metrics, unix.RTAX_LOCK); len(lock) >= 4 && binary.NativeEndian.Uint32(lock)&(1<<unix.RTAX_MTU) != 0 {
		return nil, nil // the kernel tells it
	}
	mtu := attribute(metrics, unix.RTAX_MTU)
	if len(mtu) < 4 || m[7] != unix.RTN_UNICAST {
		return nil, nil
	}
	r := RouteMTU{Network: network(m), MTU: binary.NativeEndian.Uint32(mtu)}
	if ways := attribute(m[routeHead:], unix.RTA_MULTIPATH); ways != nil {
		return r.ways(ways)
	}
	if link := attribute(m[routeHead:], unix.RTA_OIF); len(link) >= 4 {
		r.Link = int(binary.NativeEndian.Uint32(link))
	}
	r.Gateway = gatewayOf(m[routeHead:])
	return []RouteMTU{r}, nil
}

// ways reads the ways of a route that has several (struct rtnexthop).
func (r RouteMTU) ways(b []byte) (all []RouteMTU, err error) {
	for len(b) >= unix.SizeofRtNexthop {
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.SizeofRtNexthop || length > len(b) {
			return nil, fmt.Errorf("a way of %d bytes to %s", length, r.Network)
		}
		r.Link, r.Gateway = int(binary.NativeEndian.Uint32(b[4:])), gatewayOf(b[unix.SizeofRtNexthop:length])
		all = append(all, r)
		b = b[min((length+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1), len(b)):]
	}
	return all, nil
}

// gatewayOf returns the gateway in attributes. One of the other family has its family in front.
func gatewayOf(attributes []byte) netip.Addr {
	b := attribute(attributes, unix.RTA_GATEWAY)
	if via := attribute(attributes, unix.RTA_VIA); b == nil && len(via) > 2 {
		b = via[2:]
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// WatchRouteMTUs has changes of the routes to these networks count as such of their MTUs, also if they have none any
// more. It reports whether they were watched already.
func (w *Watcher) WatchRouteMTUs(all []RouteMTU) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := !slices.ContainsFunc(all, func(r RouteMTU) bool { return !w.networks[r.Network] })
	w.networks = make(map[netip.Prefix]bool, len(all))
	for _, r := range all {
		w.networks[r.Network] = true
	}
	return known
}

// changesMTU reports whether a message about a route may change an MTU.
func (w *Watcher) changesMTU(m []byte) bool {
	if !isRoute(m) {
		return false
	}
	if hasMTU(m) {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.networks) > 0 && w.networks[network(m)]
}
