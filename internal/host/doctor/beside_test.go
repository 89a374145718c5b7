package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// judged is what a changed machine should be told first.
type judged struct {
	name   string
	build  func() *box
	check  string // "": nothing is wrong
	remedy string // part of a remedy of the first finding
	under  string // a check whose finding waits for the first
}

func (j *judged) run(t *testing.T) {
	t.Helper()
	r, err := Examine(j.build().s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict.Check != j.check {
		t.Errorf("%s: %q: %s; want %q", j.name, r.Verdict.Check, r.Verdict.Sentence, j.check)
		return
	}
	if j.check != "" && !strings.Contains(fmt.Sprint(r.Findings[0].Remedies), j.remedy) {
		t.Errorf("%s: %+v", j.name, r.Findings[0].Remedies)
	}
	if f := findingOf(r, j.under); j.under != "" && (f == nil || f.Because != j.check) {
		t.Errorf("%s: %s is not under %s: %+v", j.name, j.under, j.check, f)
	}
}

// TestProgramBesideQueue checks that on a machine that does not forward a program on the core of
// a queue comes before RPS, where the packets alone would leave the core room.
func TestProgramBesideQueue(t *testing.T) {
	host := func(forward string, softirq, system, user float64) func() *box {
		return func() *box {
			b := newBox(4)
			b.card("eth0", "r8125", 2500, 1, 1)
			b.s.Sysctls["net.ipv4.ip_forward"], b.s.Sysctls["net.ipv6.conf.all.forwarding"] = forward, "0"
			return b.traffic("eth0", 1400, 119000).core(0, softirq, system, user)
		}
	}
	for _, j := range []judged{
		{name: "host", build: host("0", 53, 41, 5), check: "CPU-3", remedy: "keep it off cpu0", under: "RPS-1"},
		{name: "router", build: host("1", 53, 41, 5), check: "RPS-1"},
		{name: "packets fill it alone", build: host("0", 90, 6, 3), check: "RPS-1"},
		{name: "packets fill most of it", build: host("0", 65, 26, 8), check: "RPS-1"},
		{name: "room", build: host("0", 40, 30, 5)},
	} {
		j.run(t)
	}
}

// TestShortProgramQueue checks that a queue shorter than the kernel's own comes before the
// program that reads it, unless the program's core is full.
func TestShortProgramQueue(t *testing.T) {
	tunnel := func(packets int, system, user float64) func() *box {
		return func() *box {
			b := newBox(4)
			b.card("eth0", "ena", 0, 2, 2)
			b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "tun0", Kind: "tun", Up: true, MTU: 1500, TxQueueLen: &packets})
			b.s.Before.Links["tun0"], b.s.After.Links["tun0"] = Link{}, Link{RxPackets: 150000, TxPackets: 260000, TxDropped: 7900}
			return b.traffic("eth0", 900, 15000, 15000).cores(18, 0, 1).core(2, 3, system, user)
		}
	}
	for _, j := range []judged{
		{name: "100 packets", build: tunnel(100, 26, 31), check: "QDISC-1", remedy: "txqueuelen 4096", under: "TUN-1"},
		{name: "500 packets", build: tunnel(500, 26, 31), check: "QDISC-1", remedy: "txqueuelen 4096", under: "TUN-1"},
		{name: "4096 packets", build: tunnel(4096, 26, 31), check: "TUN-1", under: "QDISC-1"},
		{name: "500 packets and a full core", build: tunnel(500, 26, 69), check: "TUN-1", under: "QDISC-1"},
		{name: "100 packets and a full core", build: tunnel(100, 26, 69), check: "TUN-1", under: "QDISC-1"},
	} {
		j.run(t)
	}
}

// TestTunnelInTunnel checks that packets that are split point to a tunnel which another one, or a
// session, seems to carry though the default route does not lead there.
func TestTunnelInTunnel(t *testing.T) {
	inside := func(split, outer uint64, mtu int) func() *box {
		return func() *box {
			b := newBox(2)
			b.card("eth0", "virtio_net", 0, 2, 2)
			b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "tailscale0", Kind: "tun", Up: true, MTU: 1280}, Interface{Name: "wg0", Kind: "wireguard", Up: true, MTU: mtu})
			b.s.Routes = []Route{{Interface: "eth0", Family: "inet"}}
			for name, sent := range map[string]uint64{"tailscale0": outer, "wg0": 24000} {
				b.s.Before.Links[name], b.s.After.Links[name] = Link{}, Link{TxPackets: sent, RxPackets: 100}
			}
			b.s.Before.SNMP["Ip.FragOKs"], b.s.After.SNMP["Ip.FragOKs"] = 0, split
			b.s.After.SNMP["Ip.InReceives"] += 600000
			return b.traffic("eth0", 700, 30000, 30000)
		}
	}
	for _, j := range []judged{
		{name: "split", build: inside(300, 48000, 1420), check: "PATH-1", remedy: "ip link set dev wg0 mtu 1220"},
		{name: "not split", build: inside(0, 48000, 1420)},
		{name: "the other one sends less", build: inside(300, 1000, 1420)},
		{name: "it fits", build: inside(300, 48000, 1220)},
	} {
		j.run(t)
	}
}

// TestNoCable checks that the cable is not blamed where there is none, or where most frames are damaged.
func TestNoCable(t *testing.T) {
	damaged := func(bad uint64, ports ...string) func() *box {
		return func() *box {
			b := newBox(2)
			b.card("eth1", "mvneta", 1000, 1, 1)
			for _, name := range ports {
				b.s.Interfaces = append(b.s.Interfaces, Interface{Name: name, Kind: "dsa", Parent: "eth1", Up: true})
			}
			b.traffic("eth1", 700, 400)
			l := b.s.After.Links["eth1"]
			l.RxErrors = bad
			b.s.After.Links["eth1"] = l
			return b
		}
	}
	for _, j := range []judged{
		{name: "a cable", build: damaged(300), check: "ERR-1", remedy: "--cable-test"},
		{name: "a switch chip", build: damaged(300, "lan1", "lan2"), check: "ERR-1", remedy: "phy-mode"},
		{name: "most frames", build: damaged(9000), check: "ERR-1", remedy: "modprobe -r mvneta"},
	} {
		j.run(t)
	}
	r, err := Examine(damaged(300, "lan1")().s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(r.Findings[0]); strings.Contains(text, "cable-test") {
		t.Errorf("a cable is blamed: %s", text)
	}
	if r, err = Examine(damaged(9000)().s, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"routes and IPv6 addresses", "networkctl reconfigure eth1", "ifdown eth1; ifup eth1", "all ports of that driver"} {
		if text := r.Findings[0].Remedies[0].Text; !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
}

// TestShortClassQueue checks that a shaper's loss below its rate points to a device whose
// queue is too short for its classes.
func TestShortClassQueue(t *testing.T) {
	for packets, want := range map[int]bool{0: true, 32: true, 1000: false} {
		b := newBox(2)
		b.card("eth0", "ena", 0, 2, 2)
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "bwp0", Kind: "ifb", Up: true, MTU: 1500, TxQueues: 2, RxQueues: 2, TxQueueLen: &packets})
		b.traffic("eth0", 900, 15000, 15000)
		b.s.Before.Links["bwp0"], b.s.After.Links["bwp0"] = Link{}, Link{RxPackets: 150000, TxPackets: 150000}
		q := Qdisc{Interface: "bwp0", Kind: "htb", Handle: "1:0", Parent: "root", RateBits: 2e9}
		b.s.Before.Qdiscs = append(b.s.Before.Qdiscs, q)
		q.Bytes, q.Packets, q.Drops = 90e6, 150000, 6000
		b.s.After.Qdiscs = append(b.s.After.Qdiscs, q)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "SHAPE-1")
		if f == nil || strings.Contains(fmt.Sprint(f.Remedies), "txqueuelen 1000") != want {
			t.Errorf("%d packets: %+v", packets, f)
		}
	}
}

// TestSleepingLink checks that where TCP sends much again, a link that sleeps between packets is named, after the look at
// connections, which changes nothing; and that it says that the link goes down.
func TestSleepingLink(t *testing.T) {
	for _, c := range []struct {
		active bool
		again  uint64
		want   int // where the remedy stands; 0: none
	}{
		{false, 610, 0}, {true, 610, 1}, {true, 4700, 2},
	} {
		b := newBox(2)
		b.card("eth0", "bcmgenet", 1000, 1, 1).EEE = &EEE{Enabled: true, Active: c.active}
		b.traffic("eth0", 900, 2000).stack("Tcp.OutSegs", 18800).stack("Tcp.RetransSegs", c.again)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "PATH-2")
		if f == nil || f.Remedies[0].Command != "ss -tin" {
			t.Errorf("%+v: %+v", c, f)
			continue
		}
		at := max(0, slices.IndexFunc(f.Remedies, func(m Remedy) bool { return m.Command == "ethtool --set-eee eth0 eee off" }))
		if at != c.want || at > 0 && !strings.Contains(f.Remedies[at].Text, "the link goes down for a moment") {
			t.Errorf("%+v: at %d of %+v", c, at, f.Remedies)
		}
	}
}
