package doctor

import (
	"fmt"
	"strings"
)

// otherMachines have counters and interrupt names of other drivers, report less, or are
// busy in ways that are no fault. Each was judged wrongly once.
var otherMachines = []machine{
	{
		// tg3 counts nothing by queue.
		name: "uncounted", under: []string{"CPU-1"}, check: "RSS-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RSS-1"},
		says:  []string{"cpu2 is full of softirq", "queue 2 of eno1 carries 86 % of the packets", "7 cores idle"},
		build: uncounted,
	},
	{
		name: "pppoe-uncounted", under: []string{"CPU-1", "RSS-1"}, check: "PPP-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "PPP-1", "RSS-1"},
		says: []string{"cpu2 is full of softirq", "queue 2 of eno1 carries 86 % of the packets", "one PPPoE stream (ppp0)"},
		build: func() *box {
			b := uncounted()
			b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "ppp0", Kind: "ppp", Up: true, MTU: 1492, Parent: "eno1", PPPoE: &PPPoE{Session: 7}})
			return b
		},
	},
	{
		// xen-netfront counts nothing by queue, and Xen gives all interrupts to the first core.
		name: "xen-one-core", under: []string{"CPU-1"}, check: "IRQ-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "IRQ-1"},
		says: []string{"cpu0 is full of softirq", "it serves 8 queues of eth0 and eth1", "3 cores idle"},
		build: func() *box {
			b := newBox(4)
			for i, name := range []string{"eth0", "eth1"} {
				n := b.card(name, "vif", 0, 4, 4)
				n.PCI, n.RSS, n.Node = nil, nil, nil
				for q := range 4 {
					b.serve(name, q, 0)
				}
				b.traffic(name, 700, 30000, 29000, 31000, 30000).named(name, "", fmt.Sprintf("vif%d-q%%[1]d-rx", i))
				b.s.Before.Statistics[name], b.s.After.Statistics[name] = map[string]uint64{}, map[string]uint64{"rx_gso_checksum_fixup": 0}
			}
			return b.core(0, 97, 1, 0)
		},
	},
	{
		name: "two-cards-one-core", under: []string{"CPU-1", "RPS-1", "RPS-1"}, check: "IRQ-1", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "RPS-1", "IRQ-1"},
		says: []string{"cpu0 is full of softirq", "it serves queue 0 of eth0 and queue 0 of eth1", "3 cores idle"},
		build: func() *box {
			b := newBox(4)
			b.card("eth0", "e1000e", 1000, 1, 1)
			b.card("eth1", "e1000e", 1000, 1, 1)
			b.traffic("eth0", 700, 50000).traffic("eth1", 600, 40000).core(0, 97, 1, 0)
			return b.named("eth0", "", "%[2]s").named("eth1", "", "%[2]s")
		},
	},
	{
		name: "hyper-threads", under: []string{"CPU-1"}, check: "IRQ-3", severity: Critical, limit: LimitBox, also: []string{"CPU-1", "IRQ-3", "RPS-1"},
		says: []string{"cpu0, cpu1, cpu2 and cpu3 are full of softirq", "cpu0 and cpu1", "are hyper-threads of one core", "4 cores idle"},
		build: func() *box {
			b := newBox(8)
			for i := range b.s.CPUs {
				b.s.CPUs[i].Siblings = []int{i / 2 * 2, i/2*2 + 1}
			}
			b.card("eth0", "ixgbe", 10000, 4, 4)
			return b.traffic("eth0", 300, 150000, 151000, 149000, 150000).cores(96, 0, 1, 2, 3)
		},
	},
	{
		name: "cloud-allowance", check: "VIRT-2", severity: Critical, limit: LimitBox, also: []string{"VIRT-2"},
		says: []string{"ens5", "exceeds its allowance of packets per second"},
		build: func() *box {
			b := cloud(20)
			return b.counted("ens5", "pps_allowance_exceeded", 260000).counted("ens5", "bw_in_allowance_exceeded", 0)
		},
	},
	{
		name: "bad-cable", check: "ERR-1", severity: Critical, limit: LimitBox, also: []string{"ERR-1"},
		says: []string{"of the frames that enp7s0 receives are damaged"},
		build: func() *box {
			b := newBox(4)
			for i, name := range []string{"enp6s0", "enp7s0"} {
				b.card(name, "r8169", 1000, 1, 1)
				b.serve(name, 0, i).traffic(name, 800, 20000+1000*i).named(name, "", "%[2]s")
			}
			return b.cores(30, 0, 1).errors("enp7s0", Link{RxErrors: 800})
		},
	},
	{
		// The host takes a little time, and the cards report neither link nor
		// slot.
		name: "busy-cloud", limit: LimitFar, says: []string{"the far end"},
		build: func() *box { return cloud(63).steal(4, 31).steal(6, 38).counted("ens5", "pps_allowance_exceeded", 0) },
	},
	{
		name: "busy-two-sockets", limit: LimitFar, says: []string{"the far end"},
		build: func() *box {
			b := newBox(32).nodes()
			one := 1
			n := b.card("ens2f0np0", "mlx5_core", 100000, 16, 63)
			n.Node, n.PCI.Width, n.PCI.MaxWidth, n.PCI.Speed, n.PCI.MaxSpeed, n.PCI.Address = &one, 16, 16, 16, 16, "0000:81:00.0"
			rates := make([]int, 16)
			for q := range rates {
				b.serve("ens2f0np0", q, 16+q)
				rates[q] = 300000 + 3000*q
			}
			b.traffic("ens2f0np0", 500, rates...).named("ens2f0np0", "rx%d_packets", "mlx5_comp%[1]d@pci:0000:81:00.0")
			for q := range rates {
				b.core(16+q, 83, 1, 1)
			}
			for i := range b.s.IRQs {
				b.s.IRQs[i].Interface = "" // the bus address identifies the card
			}
			return b
		},
	},
	{
		name: "busy-shaped-home", limit: LimitFar, says: []string{"the far end"},
		build: func() *box {
			b := newBox(4)
			for i, name := range []string{"wan", "lan"} {
				b.card(name, "mvneta", 2500, 1, 1)
				b.serve(name, 0, i)
			}
			b.traffic("wan", 1200, 9000).traffic("lan", 200, 5000).core(0, 55, 2, 1).core(1, 35, 2, 1)
			b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "ifb4wan", Kind: "ifb", Up: true, MTU: 1500, TxQueues: 1, RxQueues: 1})
			b.s.Before.Links["ifb4wan"], b.s.After.Links["ifb4wan"] = Link{}, Link{RxPackets: 90000, TxPackets: 89700}
			cake := Qdisc{Interface: "ifb4wan", Kind: "cake", Handle: "8005:0", Parent: "root", RateBits: 110e6}
			b.s.Before.Qdiscs = []Qdisc{cake}
			cake.Bytes, cake.Packets, cake.Drops, cake.Overlimits = 85e6, 89700, 300, 20000
			b.s.After.Qdiscs = []Qdisc{cake}
			return b
		},
	},
	{
		// intel_pstate's clock under load on all cores, send queues with early
		// drops, a modem's slow link, and a program on a core that hardly
		// receives.
		name: "busy-ordinary", limit: LimitFar, says: []string{"the far end", "programs fill cpu7"},
		build: func() *box {
			b := newBox(8)
			b.card("eth0", "ice", 25000, 4, 4)
			b.card("eth1", "ice", 25000, 4, 4)
			b.card("modem0", "e1000e", 1000, 1, 1).Mbit = 100
			b.traffic("eth0", 900, 90000, 91000, 89000, 90500).traffic("eth1", 900, 90000, 91000, 89000, 90500)
			b.serve("modem0", 0, 7).traffic("modem0", 200, 30)
			b.clock(2100, 3800).cores(76, 0, 1, 2, 3).core(7, 0, 3, 97).multiqueue("fq_codel")
			return b.named("eth0", "", "ice-%[2]s-TxRx-%[1]d").named("eth1", "", "ice-%[2]s-TxRx-%[1]d")
		},
	},
}

// cloud is a virtual machine with two ena cards, whose packets go to all cores.
func cloud(softirq float64) *box {
	b := newBox(8)
	b.s.Host.Hypervisor, b.s.Host.IdleStates = true, nil
	for _, name := range []string{"ens5", "ens6"} {
		n := b.card(name, "ena", 0, 8, 8)
		n.PCI, n.EEE, n.Pause = nil, nil, nil
		b.traffic(name, 500, 60000, 62000, 59000, 61000, 60000, 63000, 58000, 60000).named(name, "queue_%d_rx_cnt", "%[2]s-Tx-Rx-%[1]d")
		for _, c := range []*Counters{b.s.Before, b.s.After} {
			delete(c.Statistics[name], "rx_flow_control_xoff")
			delete(c.Statistics[name], "tx_flow_control_xoff")
		}
	}
	for id := range 8 {
		b.core(id, softirq+float64(id%3), 1, 1)
	}
	return b
}

// named sets the forms of a card's per-queue packet statistics and of its interrupt
// names. The forms take the queue and the card's name. An empty form changes nothing.
// Call it after traffic.
func (b *box) named(name, statistic, interrupt string) *box {
	if statistic != "" {
		for _, c := range []*Counters{b.s.Before, b.s.After} {
			renamed := map[string]uint64{}
			for key, n := range c.Statistics[name] {
				var q int
				if _, err := fmt.Sscanf(key, "rx_queue_%d_packets", &q); err == nil {
					key = fmt.Sprintf(statistic, q)
				}
				renamed[key] = n
			}
			c.Statistics[name] = renamed
		}
	}
	for i := range b.s.IRQs {
		var q int
		if irq := &b.s.IRQs[i]; irq.Interface == name {
			if _, err := fmt.Sscanf(strings.TrimPrefix(irq.Name, name), "-TxRx-%d", &q); err != nil {
				panic(err)
			}
			irq.Name = fmt.Sprintf(interrupt, q, name)
		}
	}
	return b
}
