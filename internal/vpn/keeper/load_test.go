package keeper

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/host/doctor"
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
		of := o.peerAt(netip.AddrPortFrom(netip.MustParseAddr(from), 7).String())
		if got := of != nil && of.ShowLoad; got != want {
			t.Errorf("%s may ask: %t", from, got)
		}
	}
}

// A peer is told of the cores, and what they do for its own tunnel.
func TestOnly(t *testing.T) {
	queue := func(card string, number int) doctor.TunnelQueue {
		return doctor.TunnelQueue{QueuePlace: doctor.QueuePlace{Interface: card, Queue: number}}
	}
	all := &doctor.VPN{
		Tunnels: []doctor.VPNTunnel{
			{Interface: "wg0", Queues: []doctor.TunnelQueue{queue("wan0", 0), queue("wan0", 1)}},
			{Interface: "wg1", Queues: []doctor.TunnelQueue{queue("wan0", 0), queue("wan1", 0)}},
		},
		Cores: []doctor.VPNCore{{CPU: 0, Busy: 0.9, Receives: []string{"wan0:0", "wan1:0"}, Runs: []string{"wg0:0 (40%)", "wg1:0 (30%)"}}, {CPU: 1, Receives: []string{"wan1:1"}, Runs: []string{}}},
	}
	its := only(all, "wg0")
	want := []doctor.VPNCore{{CPU: 0, Busy: 0.9, Receives: []string{"wan0:0"}, Runs: []string{"wg0:0 (40%)"}}, {CPU: 1, Receives: []string{}, Runs: []string{}}}
	if diff := cmp.Diff(want, its.Cores); diff != "" || len(its.Tunnels) != 1 || its.Tunnels[0].Interface != "wg0" {
		t.Errorf("%+v %s", its.Tunnels, diff)
	}
	if len(all.Tunnels) != 2 || len(all.Cores[0].Receives) != 2 || len(all.Cores[0].Runs) != 2 {
		t.Errorf("what others are told has changed: %+v", all)
	}
}
