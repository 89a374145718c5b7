package doctor

import (
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/testenv"
)

// TestTunnels prints the tables of tunnels: a worker beside the queue that receives, a
// kernel's tunnel over a full member of a group, and a worker that has a core for itself.
func TestTunnels(t *testing.T) {
	group := newBox(4)
	for _, name := range []string{"eth0", "eth1"} {
		group.card(name, "igb", 1000, 1, 1).Master = "bond0"
	}
	group.s.Interfaces = append(group.s.Interfaces,
		Interface{Name: "bond0", Kind: "bond", Up: true, Bond: &Bond{Mode: "802.3ad", Hash: "layer3+4", Members: []string{"eth0", "eth1"}}},
		Interface{Name: "bond0.7", Kind: "vlan", Up: true, Parent: "bond0"})
	group.traffic("eth0", 1480, 82000).traffic("eth1", 400, 900)
	kernel := []VPNCount{{Interface: "wg1", Engine: "kernel", Via: []string{"bond0.7"}, Workers: []VPNWorker{}}}
	group.s.Before.VPN, group.s.After.VPN = kernel, kernel

	alone := weirTunnel("2").core(2, 4, 16, 79)
	alone.s.After.VPN[0].Workers[1].Ticks += 420
	for name, b := range map[string]*box{"tunnels-beside-queue": weirTunnel("2"), "tunnels-group": group, "tunnels-alone": alone} {
		var out strings.Builder
		if err := Tunnels(b.s).Print(&out); err != nil {
			t.Fatal(err)
		}
		testenv.GoldenFile(t, filepath.Join("testdata", name+".txt"), []byte(out.String()))
	}
}

// TestTunnelsUnknown checks that nothing is made up for a tunnel that has just come, or
// for none.
func TestTunnelsUnknown(t *testing.T) {
	b := weirTunnel("0-7")
	b.s.Before.VPN = nil
	all := Tunnels(b.s)
	if len(all.Tunnels) != 1 || len(all.Tunnels[0].Workers) != 0 || len(all.Tunnels[0].Limits) != 0 {
		t.Errorf("%+v", all)
	}
	b.s.After.VPN = nil
	var out strings.Builder
	if err := Tunnels(b.s).Print(&out); err != nil || out.String() != "weir vpn run keeps no tunnel here\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// TestTunnelBundle checks that lists of cores are checked, as all others are.
func TestTunnelBundle(t *testing.T) {
	b := weirTunnel("0-x")
	if err := b.s.check(); err == nil || !strings.Contains(err.Error(), "worker 1 of wg0") {
		t.Error(err)
	}
}
