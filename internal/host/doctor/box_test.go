package doctor

import (
	"fmt"
	"slices"

	"weir/internal/host/cpulist"
)

// box builds a whole machine for tests: a Linux router whose cards report everything,
// sampled twice, ten seconds apart.
type box struct {
	s    *Snapshot
	next int // next interrupt number
}

const (
	sampled = 10   // seconds between the samples
	ticks   = 1000 // ticks of each core between the samples
)

func newBox(cores int) *box {
	b := &box{next: 40, s: &Snapshot{
		Format: Format, Version: Version, Seconds: sampled, Wished: sampled,
		Host:     Host{System: "Linux", Kernel: "6.12.0", CPU: "Test CPU", Mitigations: map[string]string{}, IdleStates: []IdleState{{Name: "C1", ExitUsec: 2}}},
		Unknown:  []UnknownLine{},
		Sysctls:  map[string]string{"net.ipv4.ip_forward": "1", "net.ipv4.conf.all.rp_filter": "0", "net.core.netdev_max_backlog": "1000"},
		Services: []string{}, Chains: []Chain{}, Routes: []Route{}, MarkRules: []MarkRule{}, Policies: &Policies{}, IRQs: []IRQ{},
		Before: &Counters{}, After: &Counters{},
	}}
	for _, c := range []*Counters{b.s.Before, b.s.After} {
		c.CPUs, c.Softnet, c.IRQs = map[int]CPUTimes{}, map[int]Softnet{}, map[int]map[int]uint64{}
		c.Links, c.Statistics = map[string]Link{}, map[string]map[string]uint64{}
		c.Qdiscs, c.SNMP, c.Throttle = []Qdisc{}, map[string]uint64{"Ip.FragFails": 7, "Ip.InReceives": 1000}, map[int]uint64{}
		for _, name := range []string{"Ip.InHdrErrors", "IpExt.InNoRoutes", "Icmp.OutTimeExcds", "Xfrm.InStateSeqError", "Xfrm.InNoStates", "Ip.ReasmFails", "Ip.ReasmReqds", "Ip.ReasmTimeout", "Udp.RcvbufErrors", "Udp.InDatagrams", "Udp.InCsumErrors", "Tcp.InCsumErrors", "Tcp.InSegs", "Tcp.OutSegs", "Tcp.RetransSegs", "Tcp.PassiveOpens",
			"TcpExt.ListenOverflows", "TcpExt.TCPReqQFullDrop", "TcpExt.TCPMemoryPressures", "TcpExt.TCPAbortOnMemory", "TcpExt.IPReversePathFilter"} {
			c.SNMP[name] = 40
		}
		c.Sockets, c.NFQueues, c.Bus = []Socket{}, []NFQueue{}, map[string]map[string]uint64{}
		c.Conntrack, c.Neighbours = &Conntrack{Count: 50}, &Neighbours{Entries4: 20, Entries6: 10}
	}
	for _, family := range []string{"ipv4", "ipv6"} {
		b.s.Sysctls["net."+family+".neigh.default.gc_thresh3"] = "1024"
	}
	b.s.Sysctls["net.netfilter.nf_conntrack_max"], b.s.Sysctls["net.netfilter.nf_conntrack_buckets"] = "262144", "262144"
	node := 0
	for id := range cores {
		b.s.CPUs = append(b.s.CPUs, CPU{ID: id, Siblings: []int{id}, Node: &node, Governor: "performance", Scaling: "acpi-cpufreq", MHz: 3000, MaxMHz: 3000})
		b.s.Before.CPUs[id] = CPUTimes{User: 5000, System: 3000, Idle: 900000, Softirq: 20000}
		b.s.Before.Softnet[id], b.s.After.Softnet[id] = Softnet{Processed: 5000, Squeezed: 2}, Softnet{Processed: 6000, Squeezed: 2}
		b.s.Before.Throttle[id], b.s.After.Throttle[id] = 3, 3
		b.core(id, 1, 1, 1)
	}
	return b
}

// core sets how a core spent its time, in percent. The rest is idle.
func (b *box) core(id int, softirq, system, user float64) *box {
	t := b.s.Before.CPUs[id]
	part := func(percent float64) uint64 { return uint64(percent * ticks / 100) }
	t.Softirq, t.System, t.User = t.Softirq+part(softirq), t.System+part(system), t.User+part(user)
	t.Idle += part(100 - softirq - system - user)
	b.s.After.CPUs[id] = t
	return b
}

// cores sets several cores alike.
func (b *box) cores(softirq float64, ids ...int) *box {
	for _, id := range ids {
		b.core(id, softirq, 1, 1)
	}
	return b
}

// card adds a card that uses queues of its most queues. Each is served by a core of its
// own, from cpu0 on.
func (b *box) card(name, driver string, mbit, queues, most int) *Interface {
	node, off, yes := 0, false, true
	n := Interface{
		Name: name, Kind: "physical", Driver: driver, Up: true, MTU: 1500, Mbit: mbit, MaxMbit: mbit, Duplex: "full", RxQueues: queues, TxQueues: queues,
		Channels: &Channels{Combined: queues, MaxCombined: most}, Rings: &Rings{Rx: 512, MaxRx: 4096, Tx: 512, MaxTx: 4096},
		Features: map[string]bool{"rx-lro": false, "rx-gro": true, "rx-checksum": true},
		RSS:      &RSS{Hash: map[string]string{"tcp4": "sdfn", "udp4": "sdfn", "tcp6": "sdfn", "udp6": "sdfn"}, Symmetric: &yes},
		EEE:      &EEE{}, Pause: &Pause{}, PCI: &PCI{ID: "8086:10fb", Speed: 5, MaxSpeed: 5, Width: 8, MaxWidth: 8}, Node: &node, Threaded: &off,
	}
	for q := range queues {
		n.RPS = append(n.RPS, "")
		n.RSS.Indirection = append(n.RSS.Indirection, q)
		cpu := fmt.Sprint(q % len(b.s.CPUs))
		b.s.IRQs = append(b.s.IRQs, IRQ{Number: b.next, Name: fmt.Sprintf("%s-TxRx-%d", name, q), Interface: name, Affinity: cpu, Effective: cpu})
		b.next++
	}
	b.s.Before.Links[name], b.s.After.Links[name] = Link{RxMissed: 12}, Link{RxMissed: 12}
	for _, c := range []*Counters{b.s.Before, b.s.After} {
		c.Statistics[name] = map[string]uint64{"rx_flow_control_xoff": 0, "tx_flow_control_xoff": 0, "rx_missed_errors": 12}
	}
	for q := range queues {
		key := fmt.Sprintf("rx_queue_%d_packets", q)
		b.s.Before.Statistics[name][key], b.s.After.Statistics[name][key] = 1000, 1000
	}
	b.s.Interfaces = append(b.s.Interfaces, n)
	return &b.s.Interfaces[len(b.s.Interfaces)-1]
}

// traffic gives each queue of a card its packets per second. Replies leave by the same
// card. size is a packet's size in bytes.
func (b *box) traffic(name string, size int, perSecond ...int) *box {
	before, after := b.s.Before.Links[name], b.s.After.Links[name]
	for q, rate := range perSecond {
		packets := uint64(rate * sampled)
		key := fmt.Sprintf("rx_queue_%d_packets", q)
		b.s.Before.Statistics[name][key] = 1000
		b.s.After.Statistics[name][key] = 1000 + packets
		after.RxPackets += packets
		after.RxBytes += packets * uint64(size)
		after.TxPackets += packets / 2
		after.TxBytes += packets / 2 * 60
		b.interrupt(name, q, packets/20)
	}
	b.s.Before.Links[name], b.s.After.Links[name] = before, after
	return b
}

// interrupt counts interrupts of a queue on the core of the queue's affinity.
func (b *box) interrupt(name string, q int, n uint64) {
	i := slices.IndexFunc(b.s.IRQs, func(irq IRQ) bool { return irq.Name == fmt.Sprintf("%s-TxRx-%d", name, q) })
	if i < 0 || n == 0 {
		return
	}
	irq := b.s.IRQs[i]
	cpus, err := cpulist.Parse(irq.Effective)
	if err != nil {
		panic(err)
	}
	b.s.Before.IRQs[irq.Number] = map[int]uint64{cpus[0]: 100}
	b.s.After.IRQs[irq.Number] = map[int]uint64{cpus[0]: 100 + n}
}

// serve moves a queue's interrupt to another core. Call it before traffic.
func (b *box) serve(name string, q, cpu int) *box {
	for i := range b.s.IRQs {
		if irq := &b.s.IRQs[i]; irq.Name == fmt.Sprintf("%s-TxRx-%d", name, q) {
			irq.Affinity, irq.Effective = fmt.Sprint(cpu), fmt.Sprint(cpu)
		}
	}
	return b
}

// lose makes a card's ring lose packets.
func (b *box) lose(name string, packets uint64) *box {
	l := b.s.After.Links[name]
	l.RxMissed += packets
	b.s.After.Links[name] = l
	b.s.After.Statistics[name]["rx_missed_errors"] += packets
	return b
}

// nodes puts the second half of the cores on NUMA node 1.
func (b *box) nodes() *box {
	one := 1
	for i := len(b.s.CPUs) / 2; i < len(b.s.CPUs); i++ {
		b.s.CPUs[i].Node = &one
	}
	return b
}
