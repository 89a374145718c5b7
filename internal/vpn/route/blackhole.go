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

// Blackholes returns the blackholes behind tunnels: of the networks that routes lead to, and of those
// that the interfaces are in by their addresses.
func Blackholes(all []resolve.WireGuard) (holes []Blackhole) {
	for i := range all {
		networks := Networks(&all[i])
		for _, n := range networks {
			holes = append(holes, Blackhole{n, blackholeMetric})
		}
		for _, a := range all[i].Addresses {
			if n := a.Masked(); !n.IsSingleIP() && !a.Addr().IsLinkLocalUnicast() && !slices.Contains(networks, n) {
				holes = append(holes, Blackhole{n, connectedMetric})
			}
		}
	}
	return holes
}

// Networks returns those that routes lead to through a tunnel.
func Networks(t *resolve.WireGuard) (all []netip.Prefix) {
	for i := range t.Peers {
		all = append(all, t.Peers[i].Routes...)
	}
	return all
}
