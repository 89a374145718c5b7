package route

import (
	"net/netip"
	"slices"

	"weir/pf/resolve"
)

// A Blackhole is where packets to a network end when no better route leads there.
type Blackhole struct {
	To     netip.Prefix
	Metric int
}

// Through is what leads into a tunnel: the networks of its interface's addresses, and those that
// routes lead to.
type Through struct{ Addresses, Networks []netip.Prefix }

// Of returns what leads into tunnels.
func Of(t resolve.Tunnels) (all []Through) {
	for i := range t.WireGuard {
		all = append(all, Through{t.WireGuard[i].Addresses, Networks(&t.WireGuard[i])})
	}
	for i := range t.IKEv2 {
		all = append(all, Through{t.IKEv2[i].Addresses, t.IKEv2[i].Routes})
	}
	return all
}

// Blackholes returns the blackholes behind tunnels: of the networks that routes lead to, and of those
// that the interfaces are in by their addresses.
func Blackholes(all ...Through) (holes []Blackhole) {
	for _, t := range all {
		for _, n := range t.Networks {
			holes = append(holes, Blackhole{n, blackholeMetric})
		}
		for _, a := range t.Addresses {
			if n := a.Masked(); !n.IsSingleIP() && !a.Addr().IsLinkLocalUnicast() && !slices.Contains(t.Networks, n) {
				holes = append(holes, Blackhole{n, connectedMetric})
			}
		}
	}
	return holes
}

// Networks returns those that routes lead to through a tunnel of WireGuard.
func Networks(t *resolve.WireGuard) (all []netip.Prefix) {
	for i := range t.Peers {
		all = append(all, t.Peers[i].Routes...)
	}
	return all
}
