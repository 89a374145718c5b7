package daemon

import (
	"testing"

	"weir/internal/netif"
)

func TestChoose(t *testing.T) {
	tests := []struct {
		name string
		link netif.Link
		mode Mode
		want Hook
	}{
		{"physical", netif.Link{Kind: netif.Physical, Ethernet: true}, Auto, XDP},
		{"physical, tcx forced", netif.Link{Kind: netif.Physical, Ethernet: true}, ForceTCX, TCX},
		{"port of a bridge", netif.Link{Kind: netif.Physical, Ethernet: true, MasterOf: "bridge"}, Auto, NoHook},
		{"port of a bond", netif.Link{Kind: netif.Physical, Ethernet: true, MasterOf: "bond"}, ForceXDP, NoHook},
		{"in a VRF", netif.Link{Kind: netif.Physical, Ethernet: true, MasterOf: "vrf"}, Auto, XDP},
		{"bond", netif.Link{Kind: netif.Bond, Ethernet: true}, Auto, XDP},
		{"veth", netif.Link{Kind: netif.Veth, Ethernet: true}, Auto, TCX},
		{"veth, xdp forced", netif.Link{Kind: netif.Veth, Ethernet: true}, ForceXDP, XDP},
		{"tap", netif.Link{Kind: netif.TAP, Ethernet: true}, Auto, TCX},
		{"tun, xdp forced", netif.Link{Kind: netif.TUN}, ForceXDP, TCX},
		{"wireguard, xdp forced", netif.Link{Kind: netif.WireGuard}, ForceXDP, TCX},
		{"ppp", netif.Link{Kind: netif.PPP}, Auto, TCX},
		{"bridge, xdp forced", netif.Link{Kind: netif.Bridge, Ethernet: true}, ForceXDP, TCX},
		{"vlan, xdp forced", netif.Link{Kind: netif.VLAN, Ethernet: true}, ForceXDP, TCX},
		{"loopback, xdp forced", netif.Link{Kind: netif.Loopback}, ForceXDP, TCX},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Choose(&test.link, test.mode)
			if got.Hook != test.want || got.Why == "" {
				t.Errorf("Choose = %+v, want hook %s and a reason", got, test.want)
			}
		})
	}
}
