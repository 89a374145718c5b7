package doctor

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// hardlyBusy are lookalikes of machines where little happens, or nothing is scarce.
var hardlyBusy = []lookalike{
	{
		name: "a port that a program took over, or that is idle", check: "HANG-1", severity: Critical,
		change: func(b *box) {
			b.deafPort().s.Interfaces[1].Addresses = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")}
		},
		fault: func(b *box) { b.deafPort().s.Interfaces[0].Master = "bond0" },
	},
	{
		name: "a far end of a tunnel is away", check: "TUN-2", severity: Warning,
		change: func(b *box) { b.refusing("wg0", "wireguard", 40) },
		fault:  func(b *box) { b.refusing("wg0", "wireguard", 400) },
	},
	{
		name: "nobody answers twenty connections", check: "PATH-2", severity: Warning,
		change: func(b *box) {
			b.stack("Tcp.OutSegs", 90).stack("Tcp.RetransSegs", 30).stack("TcpExt.TCPSynRetrans", 26)
		},
		fault: func(b *box) {
			b.stack("Tcp.OutSegs", 90).stack("Tcp.RetransSegs", 30).stack("TcpExt.TCPSynRetrans", 6)
		},
	},
	{
		name: "an idle board at its lowest clock", check: "PWR-1", severity: Warning,
		change: func(b *box) { b.crawling().less("eth0", 200).less("eth1", 300) },
		fault:  func(b *box) { b.crawling().less("eth0", 900).less("eth1", 300) },
	},
	{
		name: "a station that walks away from an access point", check: "WIFI-1", severity: Warning,
		change: func(b *box) { b.wireless(40000, 3000, 6000, 3000, 0) },
		fault:  func(b *box) { b.wireless(40000, 6000, 6000, 3000, 0) },
	},
	{
		name: "RPS to one core that lets the queue's own sleep", check: "RPS-1", severity: Warning,
		change: func(b *box) { b.cores(70, 0, 1, 2, 3).handsOver(100) },
		fault:  func(b *box) { b.cores(70, 0, 1, 2, 3).handsOver(100000) },
	},
	{
		name: "a shaper's kind of drops in front of an Ethernet card", check: "QDISC-1", severity: Warning,
		change: func(b *box) { b.drops("eth0", "physical") },
		fault:  func(b *box) { b.drops("can0", "can") },
	},
}

// deafPort lets eth0 receive into its own memory only, and send nothing.
func (b *box) deafPort() *box {
	b.counted("eth0", "InDroppedDma", 402)
	l := b.s.Before.Links["eth0"]
	b.s.After.Links["eth0"] = l
	return b
}

// crawling leaves the cores nothing to do, at a fifteenth of their clock.
func (b *box) crawling() *box {
	b.cores(3, 0, 1, 2, 3)
	for i := range b.s.CPUs {
		c := &b.s.CPUs[i]
		c.Governor, c.Scaling, c.MHz, c.MaxMHz = "ondemand", "cpufreq-dt", 48, 716
	}
	return b
}

// handsOver gives each queue of the cards a mask of all cores, and lets each core hand over packets.
func (b *box) handsOver(packets uint64) {
	for i := range b.s.Interfaces {
		b.s.Interfaces[i].RPS = []string{"0-3", "0-3", "0-3", "0-3"}
	}
	for id, s := range b.s.After.Softnet {
		s.Processed, s.RPS = b.s.Before.Softnet[id].Processed+200000, b.s.Before.Softnet[id].RPS+packets
		b.s.After.Softnet[id] = s
	}
}

// drops lets fq_codel drop a tenth of what an interface should send.
func (b *box) drops(name, kind string) {
	if kind != "physical" {
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: name, Kind: kind, Up: true, MTU: 16})
	}
	b.disciplines(Qdisc{Interface: name, Kind: "fq_codel", Handle: "0:0", Parent: "root", Packets: 9000, Drops: 1000})
}

// TestFullRing tells a ring that is too short from one whose driver keeps its places.
func TestFullRing(t *testing.T) {
	for _, c := range []struct {
		rate   int // packets a second
		xdp    string
		says   string
		remedy string
	}{
		{1, "native", "does not give the ring's places back", "ip link set dev eth0 xdp off"},
		{1, "", "does not give the ring's places back", "ip link set dev eth0 down; ip link set dev eth0 up"},
		{900, "native", "bursts are longer than the ring", "ethtool -G eth0 rx 2048"},
	} {
		b := newBox(4)
		d := b.card("eth0", "igb", 1000, 2, 2)
		d.XDP, d.Rings = c.xdp, &Rings{Rx: 512, MaxRx: 4096}
		b.traffic("eth0", 90, c.rate, 0).lose("eth0", 90).cores(1, 0, 1, 2, 3)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f := findingOf(r, "RING-1"); f == nil || !strings.Contains(f.Says, c.says) || f.Remedies[0].Command != c.remedy {
			t.Errorf("%+v: %+v", c, f)
		} else if strings.HasPrefix(c.remedy, "ip link set dev eth0 down") && !strings.Contains(f.Remedies[0].Text, "networkctl reconfigure eth0") {
			t.Errorf("nothing sets its routes again: %s", f.Remedies[0].Text)
		}
	}
}

// TestIdlePort checks that a port that nothing uses raises no alarm, whatever its own memory loses.
func TestIdlePort(t *testing.T) {
	for _, c := range []struct{ route, address, want string }{
		{"eth1", "", ""}, {"eth1", "fe80::1/64", ""}, {"eth1", "192.168.1.1/24", "HANG-1"}, {"eth0", "", "HANG-1"},
	} {
		b := newBox(4)
		if d := b.card("eth0", "mlx5_core", 10000, 4, 4); c.address != "" {
			d.Addresses = []netip.Prefix{netip.MustParsePrefix(c.address)}
		}
		b.card("eth1", "mlx5_core", 10000, 4, 4).Addresses = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")}
		b.loaded().cores(30, 0, 1, 2, 3).deafPort()
		b.s.Routes = []Route{{Interface: c.route, Family: "inet"}}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict.Check != c.want {
			t.Errorf("%+v: %s: %s", c, r.Verdict.Check, r.Verdict.Sentence)
		}
	}
}

// TestBeside checks that work beside the packets of a full core is named.
func TestBeside(t *testing.T) {
	for user, want := range map[float64]bool{40: true, 4: false} {
		b := newBox(4)
		b.card("eth0", "r8125", 2500, 1, 1)
		b.traffic("eth0", 1400, 120000).core(0, 94-user, 4, user)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "RPS-1")
		if f == nil {
			t.Fatalf("%g: no RPS-1", user)
		}
		if got := slices.ContainsFunc(f.Remedies, func(m Remedy) bool { return m.Command == "top -1 -H" }); got != want {
			t.Errorf("%g %% of other work: named %t: %+v", user, got, f.Remedies)
		}
	}
}
