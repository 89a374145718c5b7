package route

import (
	"net/netip"
	"slices"
	"testing"

	"weir/pf/resolve"
)

// A network that an interface is in has a blackhole behind the route that the kernel makes. One that
// weir has a route for has the usual one only.
func TestBlackholes(t *testing.T) {
	p := netip.MustParsePrefix
	got := Blackholes(Of(resolve.Tunnels{WireGuard: []resolve.WireGuard{
		{
			Addresses: []netip.Prefix{p("10.9.0.1/24"), p("10.2.0.1/16"), p("fe80::1/64"), p("10.8.0.1/32")},
			Peers:     []resolve.Peer{{Allowed: []netip.Prefix{p("10.3.0.0/16")}}, {Routes: []netip.Prefix{p("10.2.0.0/16")}}},
		},
		{Addresses: []netip.Prefix{p("fd09::1/64")}},
	}, IKEv2: []resolve.IKEv2{{Addresses: []netip.Prefix{p("10.7.0.1/30")}, Routes: []netip.Prefix{p("10.4.0.0/16")}, Networks: []netip.Prefix{p("0.0.0.0/0")}}}})...)
	want := []Blackhole{
		{p("10.2.0.0/16"), blackholeMetric}, {p("10.9.0.0/24"), connectedMetric}, {p("fd09::/64"), connectedMetric},
		{p("10.4.0.0/16"), blackholeMetric}, {p("10.7.0.0/30"), connectedMetric},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}
