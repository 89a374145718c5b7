package doctor

import (
	"strings"
	"testing"
)

// TestUnmerged checks that full packets which come one by one over a virtual device are named
// before the core that they fill, and only where they do.
func TestUnmerged(t *testing.T) {
	for _, c := range []struct {
		name       string
		kind       string
		size, busy uint64
		off        bool
		want       string
	}{
		{"a veth", "veth", 1480, 88, true, "GRO is off"},
		{"a guest's tap", "tun", 1480, 88, true, "no checksum and segmentation"},
		{"a card", "physical", 1480, 88, true, "from v0, whose GRO is off"},
		{"a veth with GRO", "veth", 1480, 88, false, ""},
		{"merged by the sender", "veth", 16000, 88, true, ""},
		{"small packets", "veth", 120, 88, true, ""},
		{"cores with room", "veth", 1480, 50, true, ""},
	} {
		b := newBox(4)
		b.card("eth0", "igb", 10000, 4, 4)
		b.traffic("eth0", 1400, 20000, 20000, 20000, 20000)
		features := map[string]bool{"rx-gro": !c.off, "tx-tcp-segmentation": true}
		if c.kind == "tun" {
			features = map[string]bool{"rx-gro": true, "tx-tcp-segmentation": !c.off}
		}
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "v0", Kind: c.kind, Master: "br0", Up: true, MTU: 1500, Features: features})
		b.s.Before.Links["v0"], b.s.After.Links["v0"] = Link{}, Link{RxPackets: 700000, RxBytes: 700000 * c.size}
		b.s.Tunnels = []Tunnel{{Kind: "ipsec", Flows: 1}}
		b.s.After.CPUs[0] = b.s.Before.CPUs[0]
		b.core(0, float64(c.busy), 1, 1)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "OFF-2")
		if (f != nil) != (c.want != "") || f != nil && (r.Verdict.Check != "OFF-2" || !strings.Contains(f.Says, c.want)) {
			t.Errorf("%s: %s: %s; %+v", c.name, r.Verdict.Check, r.Verdict.Sentence, f)
		}
		if tunnel := findingOf(r, "TUN-1"); f != nil && tunnel != nil && tunnel.Because != "OFF-2" {
			t.Errorf("%s: %+v", c.name, tunnel)
		}
	}
}

// TestMergedByProgram checks that a program which hands over merged packets is told from a link with a
// small MTU.
func TestMergedByProgram(t *testing.T) {
	for size, want := range map[uint64]string{2300: "ethtool -K eth0 gro off", 700: "nft"} {
		b := newBox(4)
		b.card("eth0", "igb", 1000, 4, 4)
		b.traffic("eth0", 700, 300, 300, 300, 300).stack("Ip.FragFails", 900).stack("Ip.InReceives", 20000)
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "tun0", Kind: "tun", Up: true, MTU: 1400})
		b.s.Before.Links["tun0"], b.s.After.Links["tun0"] = Link{}, Link{RxPackets: 2000, RxBytes: 2000 * size}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f := findingOf(r, "PATH-1"); f == nil || r.Verdict.Check != "PATH-1" || !strings.HasPrefix(f.Remedies[0].Command, want) {
			t.Errorf("%d: %s; %+v", size, r.Verdict.Sentence, f)
		}
	}
}
