package doctor

import (
	"slices"
	"strings"
	"testing"
)

// causeMachines have a full core, a full ring, skew or loss, and what made it so. The
// cause must be the verdict, and what it explains must stand under it.
var causeMachines = []machine{
	{
		name: "slow-clock", check: "PWR-1", severity: Critical, limit: LimitBox, also: []string{"PWR-1", "CPU-2", "RING-1"}, under: []string{"CPU-2", "RING-1"},
		says: []string{"800 of 3,400 MHz", "eth1 loses"}, remedy: "cpupower frequency-set -g performance",
		build: func() *box {
			b := forwarding(4, 97)
			for i := range b.s.CPUs {
				b.s.CPUs[i].Governor, b.s.CPUs[i].MHz, b.s.CPUs[i].MaxMHz = "schedutil", 800, 3400
			}
			return b.lose("eth1", 40000)
		},
	},
	{
		name: "stuck-clock", check: "PWR-1", severity: Critical, limit: LimitBox, also: []string{"PWR-1", "CPU-2"}, under: []string{"CPU-2"},
		says: []string{"800 of 3,400 MHz", "governor performance"}, remedy: "turbostat",
		build: func() *box {
			b := forwarding(4, 97)
			for i := range b.s.CPUs {
				b.s.CPUs[i].MHz, b.s.CPUs[i].MaxMHz = 800, 3400
			}
			return b
		},
	},
	{
		name: "stolen-time", check: "VIRT-1", severity: Critical, limit: LimitBox, also: []string{"VIRT-1", "CPU-2", "RING-1"}, under: []string{"CPU-2", "RING-1"},
		says: []string{"the hypervisor takes up to 37 %", "eth1 loses"}, remedy: "mpstat",
		build: func() *box {
			b := forwarding(4, 61)
			b.s.Host.Hypervisor = true
			for id := range 4 {
				t := b.s.After.CPUs[id]
				t.Steal, t.Idle = t.Steal+370, t.Idle-370
				b.s.After.CPUs[id] = t
			}
			return b.lose("eth1", 40000)
		},
	},
	{
		name: "heat", check: "THR-1", severity: Critical, limit: LimitBox, also: []string{"THR-1", "CPU-2"}, under: []string{"CPU-2"},
		says: []string{"4 cores were slowed down 1200 times"}, remedy: "thermal_throttle",
		build: func() *box {
			b := forwarding(4, 96)
			for id := range 4 {
				b.s.After.Throttle[id] += 300
			}
			return b
		},
	},
	{
		name: "htb-lock", check: "LOCK-1", severity: Critical, limit: LimitBox, also: []string{"LOCK-1", "CPU-2", "SHAPE-1"}, under: []string{"CPU-2", "SHAPE-1"},
		says: []string{"one htb", "are queued again", "dropped"}, remedy: "tc -s -d qdisc show dev eth0",
		build: func() *box {
			b := forwarding(8, 98)
			return b.disciplines(Qdisc{Interface: "eth0", Kind: "htb", Handle: "1:0", Parent: "root", Bytes: 3.2e9, Packets: 4e6, Drops: 61000, Overlimits: 900, Requeues: 48000})
		},
	},
	{
		name: "htb-below-rate", check: "LOCK-1", severity: Critical, limit: LimitBox, also: []string{"LOCK-1", "SHAPE-1"}, under: []string{"SHAPE-1"},
		says: []string{"it drops 12 %", "320 Mbit/s of 900 Mbit/s"}, remedy: "tc -s -d qdisc show dev eth0",
		build: func() *box {
			b := forwarding(4, 63)
			return b.disciplines(Qdisc{Interface: "eth0", Kind: "htb", Handle: "1:0", Parent: "root", RateBits: 900e6, Bytes: 400e6, Packets: 440000, Drops: 60000, Overlimits: 120000, Requeues: 900})
		},
	},
	{
		name: "wireguard-one-flow", check: "TUN-1", severity: Critical, limit: LimitBox, also: []string{"TUN-1", "CPU-1", "RSS-1"}, under: []string{"CPU-1", "RSS-1"},
		says: []string{"WireGuard (wg0) fills cpu2", "one flow", "7 cores idle"}, remedy: "threaded",
		build: func() *box {
			b := tunnelled8("wireguard", "wg0", 1)
			return b.core(2, 97, 1, 0)
		},
	},
	{
		name: "ipsec-one-flow", check: "TUN-1", severity: Critical, limit: LimitBox, also: []string{"TUN-1", "CPU-1", "RSS-1"}, under: []string{"CPU-1", "RSS-1"},
		says: []string{"IPsec fills cpu2", "one flow"}, remedy: "per-CPU SAs",
		build: func() *box {
			b := tunnelled8("ipsec", "", 1)
			return b.core(2, 98, 1, 0)
		},
	},
	{
		name: "openvpn-tun", check: "TUN-1", severity: Critical, limit: LimitBox, also: []string{"TUN-1", "CPU-3"}, under: []string{"CPU-3"},
		says: []string{"the program of tun0 fills cpu3", "one thread"}, remedy: "DCO",
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "igb", 1000, 4, 4)
			b.traffic("eth0", 1400, 9000, 200, 300, 7000).cores(12, 0, 1, 2).core(3, 4, 38, 58)
			return b.tunnel(Tunnel{Kind: "tun", Interface: "tun0"}, 150000)
		},
	},
	{
		name: "weir-tunnel-beside-queue", check: "TUN-1", severity: Critical, limit: LimitBox, also: []string{"TUN-1", "CPU-3"}, under: []string{"CPU-3"},
		says: []string{"worker 1 of weir's tunnel wg0 and other work share cpu2, which is full"}, remedy: "weir vpn affinity set wg0:1=7",
		build: func() *box { return weirTunnel("2").core(7, 0, 0, 0) },
	},
	{
		name: "interrupt-rate", check: "IRQ-5", severity: Critical, limit: LimitBox, also: []string{"IRQ-5", "CPU-1", "RPS-1"}, under: []string{"CPU-1", "RPS-1"},
		says: []string{"interrupts take 77 % of cpu0", "eth0 interrupts for nearly each packet"}, remedy: "ethtool -C eth0 rx-usecs 50",
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "e1000e", 1000, 1, 1).Coalesce = &Coalesce{}
			b.traffic("eth0", 300, 90000).core(0, 20, 1, 1)
			t := b.s.After.CPUs[0]
			t.IRQ, t.Idle = t.IRQ+770, t.Idle-770
			b.s.After.CPUs[0] = t
			b.s.After.IRQs[b.s.IRQs[0].Number] = map[int]uint64{0: 100 + 820000}
			return b
		},
	},
	{
		name: "slot-2-gbit", check: "PCI-1", severity: Critical, limit: LimitBox, also: []string{"PCI-1", "RING-1"}, under: []string{"RING-1"},
		says: []string{"1 lane at 2.5 GT/s", "Gbit/s now", "eth0 loses"}, remedy: "lspci",
		build: func() *box {
			b := newBox(4)
			n := b.card("eth0", "ixgbe", 10000, 4, 4)
			n.PCI.Speed, n.PCI.Width = 2.5, 1
			return b.traffic("eth0", 1500, 37500, 37000, 38000, 37500).cores(31, 0, 1, 2, 3).lose("eth0", 60000)
		},
	},
	{
		name: "half-duplex", check: "LINK-1", severity: Critical, limit: LimitBox, also: []string{"LINK-1", "ERR-1"}, under: []string{"ERR-1", "ERR-1"},
		says: []string{"eth1 runs half duplex"}, remedy: "autoneg on",
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "igb", 1000, 4, 4)
			n := b.card("eth1", "igb", 100, 4, 4)
			n.MaxMbit, n.Duplex = 1000, "half"
			b.traffic("eth0", 900, 900, 800, 900, 850).traffic("eth1", 900, 1500, 1400, 1450, 1500)
			return b.counted("eth1", "rx_crc_errors", 900).errors("eth1", Link{TxErrors: 700})
		},
	},
	{
		name: "program-takes-core", check: "CPU-3", severity: Critical, limit: LimitBox, also: []string{"CPU-3", "RING-1"}, under: []string{"RING-1"},
		says: []string{"programs fill cpu2", "queue 2 of eth1", "eth1 loses"}, remedy: "top -1 -H",
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "igb", 1000, 4, 4)
			b.card("eth1", "igb", 1000, 4, 4)
			return b.traffic("eth1", 700, 9000, 9100, 15000, 8900).cores(20, 0, 1, 3).core(2, 8, 14, 78).lose("eth1", 22000)
		},
	},
	{
		name: "udp-one-queue", under: []string{"CPU-1"}, check: "RSS-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RSS-1", "RSS-3"},
		says: []string{"cpu1 is full of softirq", "queue 1 of eth0"}, remedy: "ethtool -N eth0 rx-flow-hash udp4 sdfn",
		build: func() *box {
			b := newBox(4)
			n := b.card("eth0", "ixgbe", 10000, 4, 4)
			n.RSS.Hash["udp4"], n.RSS.Hash["udp6"] = "sd", "sd"
			return b.traffic("eth0", 500, 9000, 410000, 8000, 8500).core(1, 96, 1, 0)
		},
	},
	{
		name: "flaps-and-crc", check: "ERR-1", severity: Critical, limit: LimitBox, also: []string{"ERR-1"}, under: []string{"ERR-1"},
		says: []string{"the link of eth1 flaps", "6 times"}, remedy: "dmesg",
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "igb", 1000, 4, 4)
			b.card("eth1", "igb", 1000, 4, 4)
			b.traffic("eth0", 900, 9000, 8000, 9000, 8500).traffic("eth1", 900, 9000, 9100, 9200, 8900)
			return b.counted("eth1", "rx_crc_errors", 60).errors("eth1", Link{CarrierChanges: 6})
		},
	},
	{
		name: "mask-of-its-own-core", under: []string{"CPU-1"}, check: "RPS-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RPS-1"},
		says: []string{"cpu0 is full of softirq", "eth0 has no more than 1 queue"}, remedy: "its mask is now 0",
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "mtk_soc_eth", 1000, 1, 1).RPS = []string{"0"}
			return b.traffic("eth0", 900, 60000).core(0, 98, 1, 0)
		},
	},
	{
		name: "hypervisor-queues", under: []string{"CPU-1"}, check: "RPS-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RPS-1"},
		says: []string{"ens18 has no more than 1 queue"}, remedy: "queues=",
		build: func() *box {
			b := newBox(8)
			b.s.Host.Hypervisor, b.s.Host.IdleStates = true, nil
			b.card("ens18", "virtio_net", 0, 1, 1)
			return b.traffic("ens18", 900, 90000).core(0, 96, 2, 1)
		},
	},
	{
		name: "far-queues-near-cores", check: "IRQ-2", severity: Warning, limit: LimitBox, also: []string{"IRQ-2"}, says: []string{"node 1", "75 %"}, remedy: "echo 5 >",
		build: func() *box {
			b := newBox(8).nodes()
			one := 1
			b.card("eth0", "i40e", 10000, 4, 8).Node = &one
			return b.serve("eth0", 3, 4).traffic("eth0", 500, 50000, 52000, 48000, 51000).cores(42, 0, 1, 2, 4)
		},
	},
	{
		name: "neighbours-full", check: "NEIGH-1", severity: Critical, limit: LimitBox, also: []string{"NEIGH-1"},
		says: []string{"IPv4 neighbours", "1,020 of 1,024"}, remedy: "net.ipv4.neigh.default.gc_thresh1=1024 net.ipv4.neigh.default.gc_thresh2=2048 net.ipv4.neigh.default.gc_thresh3=4096",
		build: func() *box {
			b := forwarding(4, 30)
			b.s.After.Neighbours.Entries4, b.s.After.Neighbours.Full4 = 1020, 40
			return b
		},
	},
	{
		name: "conntrack-full", check: "CT-1", severity: Critical, limit: LimitBox, also: []string{"CT-1"},
		says: []string{"65,530 of 65,536"}, remedy: "net.netfilter.nf_conntrack_max=131072 net.netfilter.nf_conntrack_buckets=131072",
		build: func() *box {
			b := forwarding(4, 30)
			b.s.Sysctls["net.netfilter.nf_conntrack_max"], b.s.Sysctls["net.netfilter.nf_conntrack_buckets"] = "65536", "16384"
			b.s.Sysctls["net.netfilter.nf_conntrack_tcp_timeout_established"] = "432000"
			b.s.After.Conntrack = &Conntrack{Count: 65530, Drop: 900}
			return b
		},
	},
	{
		name: "conntrack-lists", check: "CT-1", severity: Critical, limit: LimitBox, also: []string{"CT-1", "CPU-2"}, under: []string{"CPU-2"},
		says: []string{"47 entries in each bucket"}, remedy: "net.netfilter.nf_conntrack_buckets=781000",
		build: func() *box {
			b := forwarding(4, 97)
			b.s.Sysctls["net.netfilter.nf_conntrack_max"], b.s.Sysctls["net.netfilter.nf_conntrack_buckets"] = "1048576", "16384"
			b.s.After.Conntrack = &Conntrack{Count: 781000}
			return b
		},
	},
}

// forwarding is a box whose two cards bring its cores an even load.
func forwarding(cores int, softirq float64) *box {
	b := newBox(cores)
	b.card("eth0", "igb", 10000, cores, cores)
	b.card("eth1", "igb", 10000, cores, cores)
	rates := make([]int, cores)
	for q := range rates {
		rates[q] = 20000 + 100*q
		b.core(q, softirq, 1, 1)
	}
	return b.traffic("eth0", 300, rates...).traffic("eth1", 300, rates...)
}

// tunnelled8 is a box of 8 cores whose card gets the outer packets of one flow on queue 2.
// The stack may spread them to all cores, in vain.
func tunnelled8(kind, name string, flows int) *box {
	b := newBox(8)
	n := b.card("eth0", "ixgbe", 10000, 8, 8)
	for q := range n.RPS {
		n.RPS[q] = ""
	}
	b.traffic("eth0", 1400, 200, 150, 150000, 180, 210, 190, 160, 200)
	return b.tunnel(Tunnel{Kind: kind, Interface: name, Flows: flows}, 1480000)
}

// tunnel adds a tunnel that receives packets between the samples.
func (b *box) tunnel(t Tunnel, packets uint64) *box {
	b.s.Tunnels = append(b.s.Tunnels, t)
	if t.Interface != "" {
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: t.Interface, Kind: t.Kind, Up: true, MTU: 1420})
		b.s.Before.Links[t.Interface], b.s.After.Links[t.Interface] = Link{}, Link{RxPackets: packets, RxBytes: 1300 * packets, TxPackets: packets / 3}
	}
	return b
}

// weirTunnel is tunnelled8 with a tunnel of weir vpn run, whose second worker runs on the
// core that receives the outer packets.
func weirTunnel(allowed string) *box {
	b := tunnelled8("tun", "wg0", 0)
	worker := func(queue int, cpus string, cpu int) VPNWorker {
		return VPNWorker{Queue: queue, Thread: 100 + queue, CPUs: cpus, CPU: cpu, Ticks: 50, SentPackets: 7, SentBytes: 7000, ReceivedPackets: 9, ReceivedBytes: 9000}
	}
	was := VPNCount{Interface: "wg0", Engine: "userspace", Via: []string{"eth0"}, SocketLost: 3, Workers: []VPNWorker{worker(0, "0-7", 5), worker(1, allowed, 2)}}
	is := was
	is.SocketLost += 20
	is.Workers = slices.Clone(was.Workers)
	w := &is.Workers[1]
	w.Ticks += 550
	w.ReceivedPackets, w.ReceivedBytes, w.ReceivedLost = w.ReceivedPackets+1_000_000, w.ReceivedBytes+1_250_000_000, 30
	w.SentPackets, w.SentBytes = w.SentPackets+100_000, w.SentBytes+5_000_000
	b.s.Before.VPN, b.s.After.VPN = []VPNCount{was}, []VPNCount{is}
	return b.core(2, 42, 15, 41)
}

// disciplines adds queueing disciplines that counted between the samples.
func (b *box) disciplines(all ...Qdisc) *box {
	for _, q := range all {
		before := q
		before.Bytes, before.Packets, before.Drops, before.Overlimits, before.Requeues, before.Backlog = 0, 0, 0, 0, 0, 0
		b.s.Before.Qdiscs, b.s.After.Qdiscs = append(b.s.Before.Qdiscs, before), append(b.s.After.Qdiscs, q)
	}
	return b
}

// verifyCause checks that the verdict's finding offers the remedy first, and that it
// explains what it should, whose own remedies are withheld.
func (m *machine) verifyCause(t *testing.T, r *Report) {
	t.Helper()
	if m.remedy != "" {
		f := findingOf(r, m.check)
		if f == nil || !slices.ContainsFunc(f.Remedies, func(r Remedy) bool { return strings.Contains(r.Command+" "+r.Text, m.remedy) }) {
			t.Errorf("%s does not offer %q: %+v", m.check, m.remedy, f)
		}
	}
	var under []string
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Because == "" || f.Severity == Notice {
			continue
		}
		under = append(under, f.Check)
		if len(f.Remedies) != 1 || f.Remedies[0].Command != "" || f.Expect != "" {
			t.Errorf("%s is explained by %s, and keeps its remedies: %+v", f.Check, f.Because, f.Remedies)
		}
	}
	slices.Sort(under)
	if want := slices.Sorted(slices.Values(m.under)); !slices.Equal(under, want) {
		t.Errorf("%v are explained; want %v", under, want)
	}
}

// TestGraph checks that the graph's findings exist, and that nothing explains itself.
func TestGraph(t *testing.T) {
	after := map[string][]string{}
	for _, e := range Graph {
		for _, end := range []string{e.Cause, e.Effect} {
			id, _, _ := strings.Cut(end, "/")
			if !slices.ContainsFunc(Checks(), func(c Check) bool { return c.ID == id }) {
				t.Errorf("no check is called %s", id)
			}
		}
		after[e.Cause] = append(after[e.Cause], e.Effect)
	}
	var walk func(node string, path []string)
	walk = func(node string, path []string) {
		if slices.Contains(path, node) {
			t.Fatalf("%s explains itself: %v", node, path)
		}
		for _, next := range after[node] {
			walk(next, append(slices.Clone(path), node))
		}
	}
	for node := range after {
		walk(node, nil)
	}
}

// TestEvidenceOnce checks that no line of a report's evidence, and no command, is printed
// twice, and that none is left out.
func TestEvidenceOnce(t *testing.T) {
	for name, s := range faulty(t) {
		r, err := Examine(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Tunnels, r.Shapers = nil, nil // the full lists that follow the findings
		var out strings.Builder
		if err := r.Print(&out, true); err != nil {
			t.Fatal(err)
		}
		for i := range r.Findings {
			f := &r.Findings[i]
			lines := slices.Clone(f.Evidence)
			for _, m := range f.Remedies {
				if m.Command != "" {
					lines = append(lines, "> "+m.Command)
				}
			}
			for _, line := range lines {
				if n := strings.Count(out.String(), " "+line+"\n"); n != 1 {
					t.Errorf("%s prints %d times: %s", name, n, line)
				}
			}
		}
	}
}

// TestGraphHasReasons checks that each edge says why the effect's remedy waits.
func TestGraphHasReasons(t *testing.T) {
	for _, e := range Graph {
		if e.Why == "" {
			t.Errorf("%s explains %s, and nothing says why its remedy waits", e.Cause, e.Effect)
		}
	}
}
