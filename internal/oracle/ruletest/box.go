package ruletest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir/internal/oracle/model"
	"weir/pf/resolve"
)

// Router returns where a packet to a foreign address would go. gateway is invalid if the
// destination is on the link; ok is false if there is no route.
type Router func(dst netip.Addr) (iface string, gateway netip.Addr, ok bool)

// mtu is that of every interface: the packets of expectations are smaller.
const mtu = 1500

// box makes the machine of a host's description, with the groups that the rules add to
// it. Interfaces are numbered from 1 and have no Ethernet header, because MAC addresses
// do not matter here.
func box(host *resolve.Host, more map[string][]string, route Router) *model.Box {
	b := &model.Box{}
	index := make(map[string]uint32)
	host = host.WithGroups(more)
	for n := range host.Interfaces {
		h := &host.Interfaces[n]
		i := model.Interface{
			Index: uint32(n + 1), Name: h.Name, Groups: groups(h), Addresses: h.Addresses, L3: true, XDPTarget: true,
		}
		i.Loopback = slices.Contains(append(i.Groups, i.Name), "lo")
		for _, p := range h.Addresses {
			i.Static4 = i.Static4 || p.Addr().Is4()
			i.Static6 = i.Static6 || p.Addr().Is6() && !p.Addr().IsLinkLocalUnicast()
		}
		index[h.Name] = i.Index
		b.Interfaces = append(b.Interfaces, i)
	}
	b.Route = func(dst netip.Addr) model.Route {
		name, gateway, ok := route(dst)
		if !ok {
			return model.Route{Kind: model.RouteNone}
		}
		return model.Route{Interface: index[name], Gateway: gateway, MTU: mtu, Neighbour: true}
	}
	return b
}

// groups returns the names that rules may use for an interface besides its own: those of
// the description, the groups that the rules put it into, and its name without the
// number.
func groups(i *resolve.HostInterface) []string {
	all := slices.Clone(i.Groups)
	if kind := strings.TrimRight(i.Name, "0123456789"); kind != i.Name && !slices.Contains(all, kind) {
		all = append(all, kind)
	}
	return all
}

// Described routes as the description says: to the networks of the interfaces' addresses,
// to the other ends of links, and by the default routes. The longest prefix decides; of
// equal ones the first.
func Described(host *resolve.Host) Router {
	type route struct {
		to      netip.Prefix
		iface   string
		gateway netip.Addr
	}
	var routes []route
	for n := range host.Interfaces {
		i := &host.Interfaces[n]
		for _, p := range i.Addresses {
			routes = append(routes, route{to: p.Masked(), iface: i.Name})
		}
		for _, a := range i.Peers {
			if a.IsValid() {
				routes = append(routes, route{to: netip.PrefixFrom(a, a.BitLen()), iface: i.Name})
			}
		}
		for _, g := range i.Default {
			all := netip.PrefixFrom(netip.IPv6Unspecified(), 0)
			if g.Is4() {
				all = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
			}
			routes = append(routes, route{all, i.Name, g.WithZone("")})
		}
	}
	slices.SortStableFunc(routes, func(a, b route) int { return b.to.Bits() - a.to.Bits() })
	return func(dst netip.Addr) (string, netip.Addr, bool) {
		for _, r := range routes {
			if r.to.Contains(dst) {
				return r.iface, r.gateway, true
			}
		}
		return "", netip.Addr{}, false
	}
}

// interfaceIndex returns the number that box gives an interface; 0 for the box itself,
// whose name is empty.
func interfaceIndex(host *resolve.Host, name string) (uint32, error) {
	if name == "" {
		return 0, nil
	}
	for n := range host.Interfaces {
		if host.Interfaces[n].Name == name {
			return uint32(n + 1), nil
		}
	}
	return 0, fmt.Errorf("the host has no interface %q", name)
}
