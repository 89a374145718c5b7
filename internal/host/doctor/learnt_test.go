package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// shaped puts HTB at 900 Mbit/s in front of eth1, which sends at that share of it; wait is what waits before and after.
func (b *box) shapedAt(share float64, held, before, after uint64) *box {
	const rate = 900_000_000
	q := Qdisc{Interface: "eth1", Kind: "htb", Handle: "1:0", Parent: "root", RateBits: rate, Backlog: before}
	b.s.Before.Qdiscs = append(b.s.Before.Qdiscs, q)
	q.Bytes, q.Packets, q.Overlimits, q.Backlog = uint64(share*rate/8*sampled), 500_000, held, after
	b.s.After.Qdiscs = append(b.s.After.Qdiscs, q)
	return b
}

// class gives the shaper a class that has all packets, and that share of the rate as its ceiling.
func (b *box) class(ceiling float64) *box {
	q := &b.s.After.Qdiscs[len(b.s.After.Qdiscs)-1]
	c := Class{Handle: "1:10", CeilingBits: uint64(ceiling * float64(q.RateBits))}
	b.s.Before.Qdiscs[len(b.s.Before.Qdiscs)-1].Classes = []Class{c}
	c.Bytes = q.Bytes
	q.Classes = []Class{c}
	return b
}

// tracked lets connection tracking refuse packets, and find some invalid, which the box answers.
func (b *box) tracked(refused, invalid, resets uint64) *box {
	b.s.Before.Conntrack.Count, b.s.After.Conntrack.Count = 262_100, 262_144
	if refused == 0 {
		b.s.After.Conntrack.Count = 900
	}
	b.s.After.Conntrack.Drop += refused
	b.s.After.Conntrack.Invalid += invalid
	b.s.Before.SNMP["Tcp.OutRsts"], b.s.After.SNMP["Tcp.OutRsts"] = 7, 7+resets
	b.s.Chains = []Chain{{Name: "iptables nat POSTROUTING", Hook: "postrouting", NAT: true}}
	return b
}

// attach adds a device that is no card, with what it counts.
func (b *box) attach(d Interface, l Link) *box {
	d.Up = true
	b.s.Interfaces = append(b.s.Interfaces, d)
	b.s.Before.Links[d.Name], b.s.After.Links[d.Name] = Link{}, l
	return b
}

// silent lets eth0 receive, and send nothing while packets wait.
func (b *box) silent(sent, before uint64) *box {
	l := b.s.Before.Links["eth0"]
	l.RxPackets, l.TxPackets = l.RxPackets+5000, l.TxPackets+sent
	b.s.After.Links["eth0"] = l
	q := Qdisc{Interface: "eth0", Kind: "fq_codel", Handle: "0:0", Parent: "root", Backlog: before}
	b.s.Before.Qdiscs = append(b.s.Before.Qdiscs, q)
	q.Packets, q.Backlog = sent, 40_000
	b.s.After.Qdiscs = append(b.s.After.Qdiscs, q)
	return b
}

// two returns a router of two cards with a little traffic.
func two(cores int) *box {
	b := newBox(cores)
	for _, name := range []string{"eth0", "eth1"} {
		b.card(name, "igc", 2500, cores, cores)
		b.traffic(name, 500, slices.Repeat([]int{5000}, cores)...)
	}
	return b
}

// TestLearnt checks each cause that a set of machines of others taught, beside a machine that looks
// much like it.
func TestLearnt(t *testing.T) {
	narrow := func(b *box, mtu int) *box {
		b.s.Interfaces[0].MTU = mtu
		b.attach(Interface{Name: "docker0", Kind: "bridge", MTU: 1500}, Link{})
		return b.attach(Interface{Name: "veth1", Kind: "veth", MTU: 1500, Master: "docker0"}, Link{RxPackets: 9000}).stack("Ip.FragFails", 400)
	}
	veth := func(b *box, lost uint64) *box {
		return b.attach(Interface{Name: "veth1", Kind: "veth", MTU: 1500}, Link{TxPackets: 20_000, TxDropped: lost})
	}
	over6 := func(b *box, protocol string) *box {
		b.attach(Interface{Name: "ppp0", Kind: "ppp", MTU: 1492, Parent: "eth0"}, Link{TxPackets: 30_000})
		return b.attach(Interface{Name: "wg0", Kind: "wireguard", MTU: 1420}, Link{TxPackets: 9000, RxPackets: 9000}).stack(protocol+".FragOKs", 3000)
	}
	still := func(b *box) *box {
		b.s.After.Links["eth0"] = b.s.Before.Links["eth0"]
		return b
	}
	eager := func(b *box, usecs int) *box {
		b.s.Interfaces[0].Coalesce = &Coalesce{RxUsecs: usecs}
		b.core(0, 14, 6, 8)
		now := b.s.After.CPUs[0]
		now.IRQ, now.Idle = now.IRQ+90, now.Idle-90
		b.s.After.CPUs[0] = now
		b.interrupt("eth0", 0, 150_000)
		return b
	}
	for _, c := range []struct {
		name, check, remedy string
		box, like           *box
	}{
		{"a burst too small", "SHAPE-1", "burst 112500", two(4).shapedAt(0.67, 400_000, 9000, 9000), two(4).shapedAt(0.67, 400_000, 0, 9000)},
		{"a class at its ceiling", "SHAPE-1", "burst 112500", two(4).shapedAt(0.6, 400_000, 9000, 9000).class(0.9), two(4).shapedAt(0.6, 400_000, 9000, 9000).class(0.6)},
		{"a shaper that waits for a burst of packets", "SHAPE-1", "burst", two(4).shapedAt(0.5, 300_000, 9000, 9000), two(4).shapedAt(0.5, 100_000, 9000, 9000)},
		{"a flood", "CT-1", "notrack; what is not tracked is not translated either", two(4).cores(97, 0, 1, 2, 3).tracked(300_000, 0, 0), two(4).cores(97, 0, 1, 2, 3).tracked(0, 0, 0)},
		{"segments out of their window", "CT-1", "be_liberal", two(4).tracked(0, 900, 800), two(4).tracked(0, 900, 100)},
		{"a veth whose other end is narrower", "PATH-1", "ip -d link show dev veth1", veth(two(4), 600), veth(two(4), 1)},
		{"a bridge wider than the way out", "PATH-1", "ip link set dev docker0 mtu 1400", narrow(two(4), 1400), narrow(two(4), 1500)},
		{"WireGuard over IPv6 over PPPoE", "PATH-1", "ip link set dev wg0 mtu 1412", over6(two(4), "Ip6"), over6(two(4), "Ip")},
		{"a card that sends nothing", "HANG-1", "ip link set dev eth0 down", two(4).silent(0, 30_000), two(4).silent(0, 0)},
		{"a card that neither sends nor receives", "HANG-1", "ip link set dev eth0 down", two(4).silent(0, 30_000), still(two(4).silent(0, 30_000))},
		{"an interrupt for each packet", "IRQ-5", "ethtool -C eth0", eager(two(4), 18), eager(two(4), 50)},
	} {
		for want, b := range map[bool]*box{true: c.box, false: c.like} {
			r, err := Examine(b.s, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.ContainsFunc(r.Findings, func(f Finding) bool {
				return f.Check == c.check && f.Severity > Notice && slices.ContainsFunc(f.Remedies, func(m Remedy) bool { return strings.Contains(m.Command+m.Text, c.remedy) })
			})
			if got != want || want && r.Verdict.Check != c.check {
				t.Errorf("%s: found %t, want %t; first: %s %s", c.name, got, want, r.Verdict.Check, r.Verdict.Sentence)
			}
		}
	}
}

// TestLeastBurst checks that no burst is advised that a packet does not fit into: TBF drops each that is longer.
func TestLeastBurst(t *testing.T) {
	for _, c := range []struct {
		kind string
		rate uint64
		mtu  int
		want string
	}{
		{"tbf", 8_000_000, 1500, "(burst 3036)"},
		{"tbf", 8_000_000, 0, "(burst 3036)"},
		{"tbf", 8_000_000, 9000, "(burst 18036)"},
		{"tbf", 400_000_000, 1500, "(burst 50000)"},
		{"htb", 8_000_000, 1492, "burst 3036 cburst 3036"},
	} {
		b := two(4).shapedAt(0.67, 1500, 9000, 9000)
		b.s.Interfaces[1].MTU = c.mtu
		for _, q := range []*Qdisc{&b.s.Before.Qdiscs[0], &b.s.After.Qdiscs[0]} {
			q.Kind, q.RateBits = c.kind, c.rate
		}
		q := &b.s.After.Qdiscs[0]
		q.Bytes, q.Packets = uint64(0.67*float64(c.rate)/8*sampled), 2000
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == "SHAPE-1" })
		if i < 0 || !strings.Contains(r.Findings[i].Remedies[0].Text, c.want) {
			t.Errorf("%s at %d bit/s, MTU %d: want %s: %+v", c.kind, c.rate, c.mtu, c.want, r.Findings)
		}
	}
}

// TestLearntOfFreeBSD checks what FreeBSD's sysctls and threads tell of LRO, RSS and programs.
func TestLearntOfFreeBSD(t *testing.T) {
	const head = "kern.osrelease: 14.1-RELEASE\nnet.inet.ip.forwarding: %d\nnet.inet.ip.redirect: 0\nnet.inet6.ip6.redirect: 0\n"
	for name, c := range map[string]struct{ text, check, remedy string }{
		"LRO":                {fmt.Sprintf(head, 1) + "dev.vmx.0.rxq0.hstats.lro_packets: 48211\n", "OFF-1", "ifconfig vmx0 -lro"},
		"LRO, no router":     {fmt.Sprintf(head, 0) + "dev.vmx.0.rxq0.hstats.lro_packets: 48211\n", "", ""},
		"LRO, hardly any":    {fmt.Sprintf(head, 1) + "dev.vmx.0.rxq0.hstats.lro_packets: 48\n", "", ""},
		"a card that sleeps": {fmt.Sprintf(head, 1) + "dev.igc.0.mac_stats.good_pkts_recvd: 88000000\ndev.igc.0.mac_stats.missed_packets: 96000\n", "BSD-4", "L1.2"},
		"OpenVPN":            {topOf([][3]float64{{70, 28, 1}, {1, 1, 1}}, "98.10 /usr/local/sbin/openvpn --config server1.conf"), "BSD-5", "DCO"},
		"another program":    {topOf([][3]float64{{70, 28, 1}, {1, 1, 1}}, "98.10 /usr/local/bin/python3"), "BSD-5", "find the program"},
		"a queue's thread":   {topOf([][3]float64{{0, 2, 96}, {1, 1, 1}}, "96.00 kernel{if_io_tqg_0}"), "BSD-5", "net.isr.dispatch=deferred"},
	} {
		s, err := Read(strings.NewReader(c.text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r, err := Examine(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict.Check != c.check || c.check != "" && !slices.ContainsFunc(r.Findings[0].Remedies, func(m Remedy) bool { return strings.Contains(m.Command+m.Text, c.remedy) }) {
			t.Errorf("%s: %s: %s %+v", name, r.Verdict.Check, r.Verdict.Sentence, r.Findings)
		}
		if name != "a queue's thread" {
			continue
		}
		s.Sysctls = map[string]string{"net.inet.rss.enabled": "0"}
		if r, err = Examine(s, nil); err != nil || !strings.Contains(r.Findings[0].Remedies[0].Command, "net.inet.rss.enabled") {
			t.Errorf("%v: %+v", err, r.Findings)
		}
	}
}

// TestNativeXDP checks that a program in generic mode comes with what the driver wants.
func TestNativeXDP(t *testing.T) {
	for driver, want := range map[string]string{"gve": "half of its queues", "ena": "3,498", "igc": ""} {
		b := newBox(2)
		b.card("eth0", driver, 1000, 1, 1).XDP = "generic"
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == "XDP-1" })
		if i < 0 || (len(r.Findings[i].Remedies) > 1) != (want != "") || want != "" && !strings.Contains(r.Findings[i].Remedies[1].Text, want) {
			t.Errorf("%s: %+v", driver, r.Findings)
		}
	}
}

// TestNearFirst checks that queues on the other node come before more queues.
func TestNearFirst(t *testing.T) {
	b := newBox(16).nodes()
	n := b.card("eth0", "mlx5_core", 25000, 4, 16)
	for q := range 4 {
		b.serve("eth0", q, 8+q).cores(84, 8+q)
	}
	b.traffic("eth0", 500, 40000, 40000, 40000, 40000)
	if *n.Node = 0; len(b.s.CPUs) != 16 {
		t.Fatal(n.Node)
	}
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == "RSS-2" })
	if r.Verdict.Check != "IRQ-2" || i < 0 || r.Findings[i].Because != "IRQ-2" {
		t.Errorf("%s: %s: %+v", r.Verdict.Check, r.Verdict.Sentence, r.Findings)
	}
}
