package keeper

import (
	"net/netip"
	"testing"

	"weir/pf/resolve"
)

// A peer may ask if its own statement says so, also where its networks lie in another peer's.
func TestMayAsk(t *testing.T) {
	o := &told{peers: []resolve.Peer{
		{Name: "shown", Allowed: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/24"), netip.MustParsePrefix("10.8.0.7/32")}, ShowLoad: true},
		{Name: "hidden", Allowed: []netip.Prefix{netip.MustParsePrefix("10.9.0.5/32"), netip.MustParsePrefix("10.8.0.0/16")}},
	}}
	for from, want := range map[string]bool{
		"10.9.0.4": true, "10.9.0.5": false, "10.8.0.7": true, "10.8.0.8": false, "192.0.2.1": false,
	} {
		if got := o.mayAsk(netip.MustParseAddr(from)); got != want {
			t.Errorf("%s may ask: %t", from, got)
		}
	}
}
