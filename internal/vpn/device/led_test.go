package device

import (
	"net/netip"
	"testing"
)

// Messages to a peer leave by the interface that its last one came by. If the routes are to decide, those that come by another one change
// only where the peer is.
func TestLed(t *testing.T) {
	peer := linkOf(t, 1)[0].peer
	one, other := netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.2:2")
	first, second := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")
	const wan0, wan1 = 7, 8
	for i, step := range []struct {
		led        int
		came, want Endpoint
	}{
		{0, Endpoint{Remote: one, Local: first, Interface: wan0}, Endpoint{Remote: one, Local: first, Interface: wan0}},
		{wan1, Endpoint{Remote: one, Local: first, Interface: wan0}, Endpoint{Remote: one}},
		{wan1, Endpoint{Remote: one, Local: second, Interface: wan1}, Endpoint{Remote: one, Local: second, Interface: wan1}},
		{wan1, Endpoint{Remote: one, Local: first, Interface: wan0}, Endpoint{Remote: one, Local: second, Interface: wan1}},
		{wan1, Endpoint{Remote: other, Local: first, Interface: wan0, Place: 3}, Endpoint{Remote: other, Place: 3}},
		{wan1, Endpoint{Remote: one}, Endpoint{Remote: one}}, // over the loopback
		{0, Endpoint{Remote: one, Local: first, Interface: wan0}, Endpoint{Remote: one, Local: first, Interface: wan0}},
	} {
		peer.Lead(step.led)
		if peer.SetEndpointFromPacket(&step.came); *peer.Endpoint() != step.want {
			t.Errorf("step %d: the peer is at %+v, want %+v", i, *peer.Endpoint(), step.want)
		}
	}
}
