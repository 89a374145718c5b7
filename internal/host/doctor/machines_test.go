package doctor

import (
	"fmt"
	"slices"
)

// machine is a whole machine with the verdict that doctor should reach.
type machine struct {
	name     string
	build    func() *box
	check    string // check that the verdict rests on; "": nothing is wrong
	severity Severity
	limit    Limit
	says     []string // parts of the verdict
	also     []string // checks with further findings above a notice; no others may have one
	remedy   string   // part of a remedy of the verdict's finding
	under    []string // checks whose findings above a notice another explains
}

// machines are the fixtures.
var machines = slices.Concat(ixgbeMachines, otherMachines, causeMachines)

// ixgbeMachines have the counters of ixgbe and igb. Their numbers are arbitrary: no rule
// of a check may depend on them.
var ixgbeMachines = []machine{
	{
		name: "idle", limit: LimitIdle, says: []string{"next to nothing to do"},
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "igb", 1000, 4, 4)
			b.card("eth1", "igb", 1000, 4, 4)
			return b.traffic("eth0", 300, 40, 0, 3, 1).traffic("eth1", 300, 5, 50, 0, 2)
		},
	},
	{
		name: "one-queue-full", under: []string{"CPU-1"}, check: "RSS-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RSS-1"},
		says: []string{"cpu3 is full of softirq", "queue 3 of eth1 carries 71 % of the packets", "3 cores idle"},
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "ixgbe", 10000, 4, 4)
			b.card("eth1", "ixgbe", 10000, 4, 4)
			return b.traffic("eth0", 64, 3000, 3000, 3000, 3000).traffic("eth1", 800, 40000, 38000, 38000, 284000).
				cores(11, 0, 1, 2).core(3, 97, 1, 0)
		},
	},
	{
		name: "other-queue-full", under: []string{"CPU-1"}, check: "RSS-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RSS-1"},
		says: []string{"cpu1 is full of softirq", "queue 1 of eth1 carries 71 % of the packets", "3 cores idle"},
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "ixgbe", 10000, 4, 4)
			b.card("eth1", "ixgbe", 10000, 4, 4)
			return b.traffic("eth0", 64, 3000, 3000, 3000, 3000).traffic("eth1", 800, 40000, 284000, 38000, 38000).
				cores(11, 0, 2, 3).core(1, 97, 1, 0)
		},
	},
	{
		name: "pppoe", under: []string{"CPU-1", "RSS-1"}, check: "PPP-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "PPP-1", "RSS-1"},
		says: []string{"cpu0 is full of softirq", "queue 0 of wan0 carries 100 % of the packets", "one PPPoE stream", "3 cores idle"},
		build: func() *box {
			b := newBox(4)
			b.card("lan0", "igb", 1000, 4, 4)
			b.card("wan0", "igb", 1000, 4, 4)
			b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "ppp0", Kind: "ppp", Up: true, MTU: 1492, Parent: "wan0"})
			return b.traffic("lan0", 100, 5000, 6000, 5500, 5200).traffic("wan0", 1400, 42000).core(0, 95, 2, 1)
		},
	},
	{
		name: "pppoe-two", under: []string{"CPU-1", "RSS-1"}, check: "PPP-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "PPP-1", "RSS-1"},
		says:  []string{"cpu1 is full of softirq", "queue 0 of wan1 carries 100 % of the packets", "PPPoE streams (ppp1 and ppp2)"},
		build: twoLines,
	},
	{
		name: "one-queue-ifb", check: "IFB-1", severity: Critical, limit: LimitBox, also: []string{"IFB-1", "SHAPE-1"}, under: []string{"SHAPE-1"},
		says: []string{"ifb0 has one queue", "97 % of the received packets"},
		build: func() *box {
			b := newBox(2)
			b.card("lan0", "e1000e", 1000, 2, 2)
			b.card("wan0", "e1000e", 1000, 2, 2)
			b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "ifb0", Kind: "ifb", Up: true, MTU: 1500, TxQueues: 1, RxQueues: 1})
			b.traffic("lan0", 100, 150, 150).traffic("wan0", 1400, 5400, 5200).cores(40, 0, 1)
			b.s.Before.Links["ifb0"], b.s.After.Links["ifb0"] = Link{}, Link{RxPackets: 106000, TxPackets: 106000}
			b.s.Before.Qdiscs = []Qdisc{{Interface: "ifb0", Kind: "tbf", Handle: "1:0", Parent: "root", RateBits: 400e6}}
			b.s.After.Qdiscs = []Qdisc{{Interface: "ifb0", Kind: "tbf", Handle: "1:0", Parent: "root", RateBits: 400e6, Bytes: 150e6, Packets: 106000, Drops: 2100, Requeues: 40}}
			return b
		},
	},
	{
		name: "lro", check: "OFF-1", severity: Warning, limit: LimitBox, also: []string{"OFF-1"}, says: []string{"eth0", "LRO"},
		build: func() *box {
			b := newBox(8)
			b.card("eth0", "mlx5_core", 25000, 8, 8).Features["rx-lro"] = true
			b.card("eth1", "mlx5_core", 25000, 8, 8)
			return b.traffic("eth0", 900, 20000, 22000, 19000, 20500, 21000, 18000, 20000, 20000).
				traffic("eth1", 900, 20000, 22000, 19000, 20500, 21000, 18000, 20000, 20000).cores(35, 0, 1, 2, 3, 4, 5, 6, 7)
		},
	},
	{
		name: "wrong-node", check: "IRQ-2", severity: Warning, limit: LimitBox, also: []string{"IRQ-2"}, says: []string{"eth0 sits on NUMA node 1", "100 %"},
		build: func() *box {
			b := newBox(8).nodes()
			one := 1
			b.card("eth0", "i40e", 10000, 4, 8).Node = &one
			return b.traffic("eth0", 500, 50000, 52000, 48000, 51000).cores(42, 0, 1, 2, 3)
		},
	},
	{
		name: "drops-idle", check: "RING-1", severity: Critical, limit: LimitBox, also: []string{"RING-1"},
		says: []string{"eth1 loses", "while cores have room"},
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "igb", 1000, 4, 4)
			b.card("eth1", "igb", 1000, 4, 4).Rings.Rx = 256
			return b.traffic("eth1", 700, 20000, 19000, 21000, 20000).cores(22, 0, 1, 2, 3).lose("eth1", 9000)
		},
	},
	{
		name: "drops-full", under: []string{"RING-1"}, check: "CPU-2", severity: Critical, limit: LimitBox, also: []string{"CPU-2", "RING-1"},
		says: []string{"packets fill the box", "eth1 loses"},
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "igb", 10000, 4, 4)
			b.card("eth1", "igb", 10000, 4, 4).Rings.Rx = 256
			return b.traffic("eth1", 300, 200000, 190000, 210000, 200000).cores(97, 0, 1, 2, 3).lose("eth1", 90000)
		},
	},
	{
		name: "split", under: []string{"CPU-1"}, check: "RSS-2", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RSS-2"},
		says: []string{"cpu0 is full of softirq", "eth4", "1 queue of the 16", "7 cores idle"},
		build: func() *box {
			b := newBox(8)
			b.card("eth3", "igb", 1000, 4, 4)
			b.card("eth4", "ixgbe", 10000, 1, 16)
			return b.traffic("eth3", 200, 200, 210, 190, 200).traffic("eth4", 900, 95000).core(0, 98, 1, 0).
				core(1, 2, 5, 4).core(2, 1, 9, 4).core(3, 1, 8, 4)
		},
	},
	{
		name: "apu2-i210", under: []string{"CPU-1"}, check: "RSS-2", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RSS-2"},
		says: []string{"cpu0 is full of softirq", "1 queue of the 4"},
		build: func() *box {
			b := newBox(4)
			b.card("enp1s0", "igb", 1000, 1, 4).PCI.ID = "8086:157b"
			b.card("enp2s0", "igb", 1000, 1, 4).PCI.ID = "8086:157b"
			return b.serve("enp2s0", 0, 1).traffic("enp1s0", 1450, 60000).traffic("enp2s0", 90, 30000).core(0, 96, 2, 0).core(1, 30, 1, 1)
		},
	},
	{
		name: "apu2-i211", under: []string{"CPU-1"}, check: "RPS-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RPS-1"},
		says: []string{"cpu0 and cpu1 are full of softirq", "no more than 2 queues", "2 cores idle"},
		build: func() *box {
			b := newBox(4)
			for _, name := range []string{"enp1s0", "enp2s0"} {
				b.card(name, "igb", 1000, 2, 2).PCI.ID = "8086:1539"
			}
			return b.traffic("enp1s0", 1000, 42000, 40000).traffic("enp2s0", 90, 2000, 2000).cores(94, 0, 1)
		},
	},
	{
		// The same full queue on a box that reports neither interrupts' cores nor
		// RPS.
		name: "little-told", under: []string{"CPU-1"}, check: "RSS-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RSS-1"},
		says: []string{"cpu2 is full of softirq", "queue 2 of ens3 carries 83 % of the packets", "5 cores idle"},
		build: func() *box {
			b := newBox(6)
			n := b.card("ens3", "mlx5_core", 40000, 6, 6)
			n.RPS, n.XPS, n.RSS = nil, nil, nil
			b.s.IRQs = nil
			return b.traffic("ens3", 400, 9000, 9000, 210000, 8000, 9000, 8000).cores(4, 0, 1, 3, 4, 5).core(2, 92, 3, 2)
		},
	},
	{
		// A card without statistics by queue. Its interrupts may go to either
		// core of the other node.
		name: "wrong-node-few", check: "IRQ-2", severity: Warning, limit: LimitBox, also: []string{"IRQ-2"}, says: []string{"p1p1 sits on NUMA node 0", "100 %"},
		build: func() *box {
			b := newBox(4).nodes()
			b.card("p1p1", "ixgbe", 10000, 2, 2)
			for i := range b.s.IRQs {
				b.s.IRQs[i].Affinity, b.s.IRQs[i].Effective = "2-3", ""
			}
			for _, c := range []*Counters{b.s.Before, b.s.After} {
				c.Statistics["p1p1"] = map[string]uint64{"rx_missed_errors": 4, "rx_flow_control_xoff": 0}
			}
			b.s.After.Links["p1p1"] = Link{RxMissed: 12, RxPackets: 900000, RxBytes: 700e6}
			return b.cores(35, 2, 3)
		},
	},
	{
		// A full link and a nearly full core: nothing is lost.
		name: "link-then-core", under: []string{"CPU-1"}, check: "RPS-1", severity: Warning, limit: LimitLink, also: []string{"CPU-1", "RPS-1"},
		says: []string{"The link is the limit: eth0 receives 949 Mbit/s", "the next one is near: cpu0 is full of softirq"},
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "r8169", 1000, 1, 1)
			b.card("eth1", "r8169", 1000, 1, 1)
			return b.serve("eth1", 0, 1).traffic("eth0", 1460, 81250).traffic("eth1", 70, 40000).core(0, 90, 2, 0).core(1, 30, 1, 1)
		},
	},
	{
		name: "busy-link", limit: LimitLink, says: []string{"the link is the limit", "eth0 receives"},
		build: func() *box {
			b := newBox(8)
			b.card("eth0", "i40e", 10000, 8, 8)
			b.card("eth1", "i40e", 10000, 8, 8)
			b.traffic("eth0", 1514, 101000, 100500, 99000, 100200, 102000, 98000, 101000, 100000).
				traffic("eth1", 90, 52000, 50000, 49000, 50200, 51000, 49000, 50000, 50000).cores(71, 0, 1, 2, 3, 4, 5, 6, 7)
			b.squeeze(300)
			return b
		},
	},
	{
		name: "two-queues-full", under: []string{"CPU-1"}, check: "RSS-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RSS-1"},
		says: []string{"cpu0 and cpu1 are full of softirq", "queues 0 and 1 of eth1 carry 92 % of the packets", "2 cores idle"},
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "ixgbe", 10000, 4, 4)
			b.card("eth1", "ixgbe", 10000, 4, 4)
			return b.traffic("eth0", 400, 40000, 40000, 40000, 40000).traffic("eth1", 400, 120000, 121000, 10000, 11000).
				cores(96, 0, 1).cores(12, 2, 3)
		},
	},
	{
		// A full link that is unrelated to the full core.
		name: "management-full", under: []string{"CPU-1"}, check: "RSS-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RSS-1"},
		says: []string{"cpu3 is full of softirq", "queue 3 of eth1 carries 71 % of the packets"},
		build: func() *box {
			b := newBox(4)
			b.card("eth1", "ixgbe", 10000, 4, 4)
			b.card("mgmt", "r8169", 100, 1, 1)
			b.traffic("eth1", 800, 40000, 38000, 38000, 284000).traffic("mgmt", 60, 40).cores(11, 0, 1, 2).core(3, 97, 1, 0)
			l := b.s.After.Links["mgmt"]
			l.TxPackets, l.TxBytes = 81000, 81000*1514
			b.s.After.Links["mgmt"] = l
			return b
		},
	},
	{
		name: "rps-targets-full", under: []string{"CPU-1"}, check: "RPS-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RPS-1"},
		says: []string{"cpu2 and cpu3 are full of softirq", "RPS hands the packets of eth0 to no other core"},
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "igb", 1000, 2, 2).RPS = []string{"2-3", "2-3"}
			b.traffic("eth0", 400, 80000, 81000).cores(40, 0, 1).cores(97, 2, 3)
			for _, id := range []int{2, 3} {
				b.s.After.Softnet[id] = Softnet{Processed: 805000, RPS: 800000, Squeezed: 2}
			}
			return b
		},
	},
	{
		name: "threaded-napi", under: []string{"CPU-1"}, check: "RSS-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RSS-1"},
		says: []string{"cpu3 is full of receiving in threads", "queue 3 of eth1 carries 90 % of the packets", "3 cores idle"},
		build: func() *box {
			b := newBox(4)
			on := true
			b.card("eth1", "ixgbe", 10000, 4, 4).Threaded = &on
			return b.traffic("eth1", 400, 10000, 10000, 10000, 270000).core(0, 2, 8, 0).core(1, 2, 8, 0).core(2, 2, 8, 0).core(3, 2, 96, 0)
		},
	},
	{
		name: "wireguard", check: "CPU-3", severity: Warning, limit: LimitBox, also: []string{"CPU-3"},
		says: []string{"the kernel's threads fill cpu1", "queue 1 of eth0", "WireGuard (wg0)"},
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "igc", 2500, 4, 4)
			b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "wg0", Kind: "wireguard", Up: true, MTU: 1420})
			return b.traffic("eth0", 1400, 20000, 21000, 20500, 20000).cores(14, 0, 2, 3).core(1, 12, 86, 1)
		},
	},
	{
		// Counters of 16 queues, as ixgbe has them; 4 are in use.
		name: "busy-listed", check: "CPU-2", severity: Critical, limit: LimitBox, says: []string{"packets fill the box"}, also: []string{"CPU-2"},
		build: func() *box {
			b := newBox(4)
			for _, name := range []string{"eth0", "eth1"} {
				b.card(name, "ixgbe", 10000, 4, 63)
				b.listed(name, 4, 15).traffic(name, 400, 90000, 91000, 89000, 90500)
			}
			return b.cores(96, 0, 1, 2, 3)
		},
	},
	{
		name: "one-core-full", under: []string{"RING-1"}, check: "CPU-2", severity: Critical, limit: LimitBox, also: []string{"CPU-2", "RING-1"},
		says: []string{"its only core", "eth0 loses"},
		build: func() *box {
			b := newBox(1)
			b.card("eth0", "e1000", 1000, 1, 1)
			b.card("eth1", "e1000", 1000, 1, 1)
			return b.traffic("eth0", 400, 60000).traffic("eth1", 100, 30000).cores(98, 0).lose("eth0", 20000)
		},
	},
	{
		name: "one-core-busy", limit: LimitFar, says: []string{"the far end"},
		build: func() *box {
			b := newBox(1)
			b.card("eth0", "e1000", 1000, 1, 1)
			b.card("eth1", "e1000", 1000, 1, 1)
			return b.traffic("eth0", 800, 20000).traffic("eth1", 100, 10000).cores(64, 0)
		},
	},
	{
		// A virtual machine. The host gives its card one queue, and reports
		// nothing about power.
		name: "virtio-one-queue", under: []string{"CPU-1", "RPS-1"}, check: "RPS-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RPS-1", "IRQ-1"},
		says: []string{"cpu1 is full of softirq", "ens18 has no more than 1 queue", "3 cores idle"},
		build: func() *box {
			b := newBox(4)
			b.s.Host.Hypervisor, b.s.Host.IdleStates = true, nil
			b.card("ens18", "virtio_net", 0, 1, 1)
			b.card("ens19", "virtio_net", 0, 1, 1)
			for i := range b.s.IRQs {
				b.s.IRQs[i].Name = fmt.Sprintf("virtio%d-input.0", i)
				b.s.IRQs[i].Affinity, b.s.IRQs[i].Effective = "1", "1"
			}
			b.traffic("ens18", 900, 90000).traffic("ens19", 100, 45000).core(1, 96, 2, 1)
			for i := range b.s.IRQs {
				b.s.Before.IRQs[b.s.IRQs[i].Number], b.s.After.IRQs[b.s.IRQs[i].Number] = map[int]uint64{1: 5}, map[int]uint64{1: 40000}
			}
			return b
		},
	},
	{
		name: "wide", under: []string{"CPU-1"}, check: "RSS-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RSS-1"},
		says: []string{"cpu17 is full of softirq", "queue 17 of ens1f0 carries 53 % of the packets", "63 cores idle"},
		build: func() *box {
			b := newBox(64)
			b.card("ens1f0", "mlx5_core", 100000, 32, 63)
			rates := make([]int, 32)
			for q := range rates {
				rates[q] = 20000
			}
			rates[17] = 700000
			return b.traffic("ens1f0", 300, rates...).core(17, 99, 1, 0)
		},
	},
	{
		name: "busy-wide", limit: LimitFar, says: []string{"the far end"},
		build: func() *box {
			b := newBox(64)
			b.card("ens1f0", "mlx5_core", 100000, 32, 63)
			b.card("ens1f1", "mlx5_core", 100000, 32, 63)
			rates := make([]int, 32)
			for q := range rates {
				rates[q] = 200000 + 2000*q
				b.core(q, 55, 1, 1)
			}
			return b.traffic("ens1f0", 600, rates...).traffic("ens1f1", 600, rates...)
		},
	},
	{
		// A router in a namespace. Its cards are veths, received in threads.
		name: "veth-queue-full", under: []string{"CPU-1"}, check: "RSS-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RSS-1"},
		says: []string{"cpu1 is full of receiving in threads", "queue 0 of lan0 carries 100 % of the packets", "programs use the other core, which threads that receive would have to share"},
		build: func() *box {
			b := newBox(2)
			b.veth("lan0", 1, 900000, 0)
			b.veth("wan0", 0, 0, 0)
			return b.core(1, 1, 98, 0).core(0, 0, 100, 0)
		},
	},
	{
		name: "busy-far", limit: LimitFar, says: []string{"the far end"},
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "ixgbe", 10000, 4, 4)
			b.card("eth1", "ixgbe", 10000, 4, 4)
			// One large flow makes its queue the largest, but no core is at
			// its limit.
			b.traffic("eth0", 1100, 90000, 31000, 30500, 29800).traffic("eth1", 120, 20000, 21000, 60000, 20000)
			b.core(0, 58, 2, 1).core(1, 33, 2, 2).core(2, 40, 2, 20).core(3, 30, 2, 2)
			return b
		},
	},
	{
		name: "busy-programs", limit: LimitFar, says: []string{"programs fill cpu7"},
		build: func() *box {
			b := newBox(8)
			b.card("eth0", "igc", 2500, 4, 4)
			return b.traffic("eth0", 900, 12000, 11500, 12500, 12000).cores(24, 0, 1, 2, 3).core(7, 0, 3, 97)
		},
	},
}

// veth adds one end of a pair with two queues. A thread bound to a core receives the
// first queue.
func (b *box) veth(name string, core int, perSecond ...int) {
	on := true
	n := Interface{Name: name, Kind: "veth", Driver: "veth", Up: true, MTU: 1500, Mbit: 10000, Duplex: "full", RxQueues: 2, TxQueues: 2,
		Channels: &Channels{Rx: 2, MaxRx: 2, Tx: 2, MaxTx: 2}, RPS: []string{"", ""}, XPS: []string{"0", "1"}, Threaded: &on,
		Features: map[string]bool{"rx-gro": true}}
	var all Link
	before, after, threads := map[string]uint64{}, map[string]uint64{}, map[int]uint64{}
	for q, rate := range perSecond {
		n.NAPI = append(n.NAPI, NAPI{Queue: q, Thread: &Thread{CPUs: fmt.Sprint(core), CPU: core}})
		key := fmt.Sprintf("rx_queue_%d_xdp_packets", q)
		before[key], after[key] = 0, uint64(rate*sampled)
		all.RxPackets += uint64(rate * sampled)
		all.RxBytes += uint64(rate * sampled * 60)
		if rate > 0 {
			threads[q] = ticks * 97 / 100
		}
	}
	b.s.Interfaces = append(b.s.Interfaces, n)
	b.s.Before.Links[name], b.s.After.Links[name] = Link{}, all
	b.s.Before.Statistics[name], b.s.After.Statistics[name] = before, after
	for c, times := range map[*Counters]map[int]uint64{b.s.Before: {0: 0, 1: 0}, b.s.After: threads} {
		if c.Threads == nil {
			c.Threads = map[string]map[int]uint64{}
		}
		c.Threads[name] = times
	}
}

// squeeze makes all cores end rounds at their budget, as busy cores do.
func (b *box) squeeze(n uint64) *box {
	for _, c := range b.s.CPUs {
		b.s.After.Softnet[c.ID] = Softnet{Processed: 105000, Squeezed: n}
	}
	return b
}

// listed makes a card's driver also count queues that are not in use.
func (b *box) listed(name string, first, last int) *box {
	for q := first; q <= last; q++ {
		b.counted(name, fmt.Sprintf("rx_queue_%d_packets", q), 0)
	}
	return b
}

// twoLines is a box with a card with one PPPoE session, a card with two, and a session
// whose device is unknown.
func twoLines() *box {
	b := newBox(4)
	b.card("lan0", "igb", 1000, 4, 4)
	b.card("wan0", "igb", 1000, 4, 4)
	b.card("wan1", "igb", 1000, 4, 4)
	b.serve("wan1", 0, 1).serve("wan1", 1, 0)
	session := func(name, over string, number int) Interface {
		n := Interface{Name: name, Kind: "ppp", Up: true, MTU: 1492, Parent: over}
		if number > 0 {
			n.PPPoE = &PPPoE{Session: number}
		}
		return n
	}
	b.s.Interfaces = append(b.s.Interfaces,
		Interface{Name: "wan0.7", Kind: "vlan", Up: true, MTU: 1500, Parent: "wan0"},
		session("ppp0", "wan0.7", 4660), session("ppp1", "wan1", 0), session("ppp2", "wan1", 0), session("ppp3", "", 0))
	b.s.Unreadable = map[string]string{"interfaces.ppp3.parent": "PPPoE sessions run over wan0.7, wan1, and no pppd was told which is its own"}
	return b.traffic("lan0", 100, 5000, 6000, 5500, 5200).traffic("wan0", 1400, 9000).traffic("wan1", 1400, 42000).core(0, 30, 2, 1).core(1, 95, 2, 1)
}
