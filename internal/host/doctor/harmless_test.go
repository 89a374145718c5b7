package doctor

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
)

// A lookalike is a fact of a machine that looks like a fault and is none. It comes with a
// similar fact that is a fault, so a check that never finds anything fails the test.
type lookalike struct {
	name, check   string
	change, fault func(b *box)
	severity      Severity // severity of the fault
}

var harmless = slices.Concat(hardlyBusy, []lookalike{
	{
		name: "XDP drops by policy on virtio_net", check: "RING-1", severity: Critical,
		change: func(b *box) {
			b.counted("eth0", "rx_queue_0_drops", 5000).counted("eth0", "rx_queue_0_xdp_drops", 5000)
		},
		fault: func(b *box) { b.counted("eth0", "rx_queue_0_drops", 5000).counted("eth0", "rx_queue_0_xdp_drops", 200) },
	},
	{
		name: "igb had no buffer, and missed nothing", check: "RING-1", severity: Critical,
		change: func(b *box) {
			b.counted("eth0", "rx_no_buffer_count", 3000).counted("eth0", "rx_queue_1_alloc_failed", 40)
		},
		fault: func(b *box) {
			b.counted("eth0", "rx_no_buffer_count", 3000)
			delete(b.s.After.Statistics["eth0"], "rx_missed_errors")
		},
	},
	{
		name: "a driver asks again for memory, and loses nothing", check: "MEM-1", severity: Critical,
		change: func(b *box) { b.counted("eth0", "rx_pg_alloc_fail", 9000) },
		fault: func(b *box) {
			b.counted("eth0", "rx_pg_alloc_fail", 9000).errors("eth0", Link{RxDropped: 9000})
		},
	},
	{
		name: "frames of unknown protocols are dropped", check: "MEM-1", severity: Critical,
		change: func(b *box) { b.errors("eth0", Link{RxDropped: 9000}) },
		fault: func(b *box) {
			b.errors("eth0", Link{RxDropped: 9000}).counted("eth0", "alloc_rx_buff_failed", 400)
		},
	},
	{
		name: "a card on USB receives in tasklets", check: "CPU-4", severity: Warning,
		change: func(b *box) { b.cores(70, 0).watchedKinds(map[string]float64{"TASKLET": 5, "NET_RX": 2}) },
		fault:  func(b *box) { b.cores(70, 0).watchedKinds(map[string]float64{"SCHED": 5, "NET_RX": 2}) },
	},
	{
		name: "a tunnel's packets are dear", check: "CPU-4", severity: Warning,
		change: func(b *box) {
			b.cores(70, 0, 1, 2, 3).less("eth0", 60000).less("eth1", 60000).unprocessed().tunnel(Tunnel{Kind: "wireguard", Interface: "wg0"}, 50000)
		},
		fault: func(b *box) {
			b.cores(70, 0, 1, 2, 3).less("eth0", 60000).less("eth1", 60000).unprocessed()
		},
	},
	{
		name: "a tunnel that leaves room for what it adds", check: "PATH-1", severity: Warning,
		change: func(b *box) { b.over("wg0", "wireguard", 1420).over("vxlan0", "vxlan", 1450) },
		fault:  func(b *box) { b.over("wg0", "wireguard", 1420).over("vxlan0", "vxlan", 1451) },
	},
	{
		name: "a guest's card with one queue and little to do", check: "RPS-1", severity: Warning,
		change: func(b *box) { b.guest(72, 30000) },
		fault:  func(b *box) { b.guest(72, 120000) },
	},
	{
		name: "a table of IPv6 destinations without a limit", check: "DST-1", severity: Critical,
		change: func(b *box) { b.destinations(4096, "6.12.0") },
		fault:  func(b *box) { b.destinations(4096, "5.10.0") },
	},
	{
		name: "far ends on bad radio", check: "PATH-2", severity: Warning,
		change: func(b *box) { b.stack("Tcp.OutSegs", 90000).stack("Tcp.RetransSegs", 1300) },
		fault:  func(b *box) { b.stack("Tcp.OutSegs", 90000).stack("Tcp.RetransSegs", 2300) },
	},
	{
		name: "Wi-Fi that finds its rate", check: "WIFI-1", severity: Warning,
		change: func(b *box) { b.wireless(40000, 300, 6000, 3000, 256-60) },
		fault:  func(b *box) { b.wireless(40000, 3000, 6000, 3000, 256-60) },
	},
	{
		name: "strangers knock at addresses that nobody has", check: "ROUTE-1", severity: Warning,
		change: func(b *box) { b.stack("IpExt.InNoRoutes", 9000).stack("Ip.InReceives", 800000) },
		fault:  func(b *box) { b.stack("IpExt.InNoRoutes", 90000).stack("Ip.InReceives", 800000) },
	},
	{
		name: "somebody traces the way", check: "ROUTE-1", severity: Warning,
		change: func(b *box) {
			b.stack("Ip.InHdrErrors", 90).stack("Icmp.OutTimeExcds", 90).stack("Ip.InReceives", 800)
		},
		fault: func(b *box) {
			b.stack("Ip.InHdrErrors", 3000).stack("Icmp.OutTimeExcds", 90).stack("Ip.InReceives", 800000)
		},
	},
	{
		name: "a few wrong checksums of the Internet", check: "SUM-1", severity: Critical,
		change: func(b *box) { b.stack("Tcp.InCsumErrors", 40).stack("Tcp.InSegs", 9000000) },
		fault:  func(b *box) { b.stack("Tcp.InCsumErrors", 40).stack("Tcp.InSegs", 900) },
	},
	{
		name: "a tunnel's peer begins anew", check: "TUN-2", severity: Critical,
		change: func(b *box) { b.refusing("wg0", "wireguard", 9) },
		fault:  func(b *box) { b.refusing("wg0", "wireguard", 9000) },
	},
	{
		name: "IPsec drops a few that came late", check: "IPSEC-2", severity: Critical,
		change: func(b *box) { b.stack("Xfrm.InStateSeqError", 9).stack("Ip.InReceives", 80000) },
		fault:  func(b *box) { b.stack("Xfrm.InStateSeqError", 9000).stack("Ip.InReceives", 80000) },
	},
	{
		name: "one connection to a far end that is gone", check: "PATH-2", severity: Warning,
		change: func(b *box) { b.stack("Tcp.OutSegs", 60).stack("Tcp.RetransSegs", 9) },
		fault:  func(b *box) { b.stack("Tcp.OutSegs", 160).stack("Tcp.RetransSegs", 40) },
	},
	{
		name: "a program that judges packets, and keeps up", check: "NFQ-1", severity: Critical,
		change: func(b *box) {
			b.s.Before.NFQueues, b.s.After.NFQueues = []NFQueue{{Dropped: 9000}}, []NFQueue{{Given: 90000, Dropped: 9000, Waiting: 3}}
		},
		fault: func(b *box) {
			b.s.Before.NFQueues, b.s.After.NFQueues = []NFQueue{{Dropped: 9000}}, []NFQueue{{Given: 90000, Dropped: 9100, Waiting: 3}}
		},
	},
	{
		name: "multicast to a host that wants it", check: "STORM-1", severity: Warning,
		change: func(b *box) { b.counted("eth0", "rx_multicast", 790000) },
		fault: func(b *box) {
			b.s.Interfaces[0].Master = "br0"
			b.counted("eth0", "rx_multicast", 790000).counted("eth0", "tx_multicast", 390000)
		},
	},
	{
		name: "a quiet network, most of it ARP", check: "STORM-1", severity: Warning,
		change: func(b *box) { b.less("eth0", 900).counted("eth0", "rx_broadcast", 800) },
		fault:  func(b *box) { b.less("eth0", 90000).counted("eth0", "rx_broadcast", 80000) },
	},
	{
		name: "rules at ingress block", check: "SHAPE-1", severity: Warning,
		change: func(b *box) {
			none := 0
			b.disciplines(Qdisc{Interface: "eth0", Kind: "clsact", Handle: "ffff:0", Parent: "ingress", Packets: 4100, Drops: 260, Policers: &none})
		},
		fault: func(b *box) {
			one := 1
			b.disciplines(Qdisc{Interface: "eth0", Kind: "clsact", Handle: "ffff:0", Parent: "ingress", Packets: 4100, Drops: 260, Policers: &one})
		},
	},
	{
		name: "a stray host's packets fail the source checks", check: "RPF-1", severity: Warning,
		change: func(b *box) { b.stack("TcpExt.IPReversePathFilter", 300).stack("Ip.InReceives", 800000) },
		fault:  func(b *box) { b.stack("TcpExt.IPReversePathFilter", 30000).stack("Ip.InReceives", 800000) },
	},
	{
		name: "a few segments are sent again", check: "PATH-2", severity: Warning,
		change: func(b *box) { b.stack("Tcp.OutSegs", 90000).stack("Tcp.RetransSegs", 90) },
		fault:  func(b *box) { b.stack("Tcp.OutSegs", 90000).stack("Tcp.RetransSegs", 1900) },
	},
	{
		name: "a handful of packets is lost", check: "RING-1", severity: Critical,
		change: func(b *box) { b.lose("eth0", fewLost-1).less("eth0", 300) },
		fault:  func(b *box) { b.lose("eth0", fewLost).less("eth0", 300) },
	},
	{
		name: "a bit error in a million frames", check: "ERR-1", severity: Critical,
		change: func(b *box) { b.counted("eth0", "rx_crc_errors", 1) },
		fault:  func(b *box) { b.counted("eth0", "rx_crc_errors", 400) },
	},
	{
		name: "a driver adds what found no room to its errors", check: "ERR-1", severity: Critical,
		change: func(b *box) { b.lose("eth0", 9000).errors("eth0", Link{RxErrors: 9000}) },
		fault:  func(b *box) { b.lose("eth0", 9000).errors("eth0", Link{RxErrors: 9500}) },
	},
	{
		name: "errors of a sleeping link's end", check: "ERR-1", severity: Critical,
		change: func(b *box) { b.errors("eth1", Link{TxErrors: 9}) },
		fault:  func(b *box) { b.errors("eth1", Link{TxErrors: 90}) },
	},
	{
		name: "a link came up", check: "ERR-1", severity: Warning,
		change: func(b *box) { b.errors("eth1", Link{CarrierChanges: 1}) },
		fault:  func(b *box) { b.errors("eth1", Link{CarrierChanges: 2}) },
	},
	{
		name: "XDP drops by policy on a newer virtio_net", check: "RING-1", severity: Critical,
		change: func(b *box) { b.counted("eth0", "rx0_drops", 5000).counted("eth0", "rx0_xdp_drops", 5000) },
		fault:  func(b *box) { b.counted("eth0", "rx0_drops", 5000).counted("eth0", "rx0_xdp_drops", 200) },
	},
	{
		name: "each of four queues loses some", check: "RING-1", severity: Warning,
		change: func(b *box) { b.counted("eth0", "rx_queue_0_drops", 4) },
		fault: func(b *box) {
			for _, key := range []string{"rx_queue_0_drops", "rx_queue_1_drops", "rx_queue_2_drops", "rx_queue_3_drops"} {
				b.counted("eth0", key, 4)
			}
		},
	},
	{
		name: "a filter of the box's own, without weir", check: "FWD-2", severity: Warning,
		change: func(b *box) { b.chain() },
		fault:  func(b *box) { b.chain().weir(0) },
	},
	{
		name: "IPsec policies of xfrm interfaces", check: "IPSEC-1", severity: Notice,
		change: func(b *box) {
			b.weir(0)
			b.s.Policies = &Policies{Bound: 6}
		},
		fault: func(b *box) {
			b.weir(0)
			b.s.Policies = &Policies{Bare: 1, Bound: 6}
		},
	},
	{
		name: "a policy routing rule with a mask of other bits", check: "MARK-1", severity: Warning,
		change: func(b *box) {
			b.weir(0)
			b.s.MarkRules = []MarkRule{{Family: "inet", Priority: 32765, Mark: 2, Mask: 0xff}}
		},
		fault: func(b *box) {
			b.weir(0)
			b.s.MarkRules = []MarkRule{{Family: "inet", Priority: 32765, Mark: 2, Mask: 0x800000ff}}
		},
	},
	{
		name: "half of the ports that translation has", check: "NAT-2", severity: Warning,
		change: func(b *box) { b.nat(7800) },
		fault:  func(b *box) { b.nat(12500) },
	},
	{
		name: "the ports of a bridge", check: "FWD-1", severity: Critical,
		change: func(b *box) { b.weir(0); b.bridged().s.Sysctls["net.ipv4.ip_forward"] = "0" },
		fault:  func(b *box) { b.weir(0); b.s.Sysctls["net.ipv4.ip_forward"] = "0" },
	},
	{
		name: "a host with two cards that is no router", check: "FWD-1", severity: Critical,
		change: func(b *box) { b.s.Sysctls["net.ipv4.ip_forward"] = "0" },
		fault:  func(b *box) { b.weir(0); b.s.Sysctls["net.ipv4.ip_forward"] = "0" },
	},
	{
		name: "a host that a few packets for others come to", check: "FWD-1", severity: Critical,
		change: func(b *box) { b.forOthers("Ip", 40, 1000) },
		fault:  func(b *box) { b.forOthers("Ip", 400, 1000) },
	},
	{
		name: "the same of IPv6", check: "FWD-1", severity: Critical,
		change: func(b *box) {
			b.addresses("2001:db8:1::1/64", "2001:db8:2::1/64").forOthers("Ip6", 9, 20)
		},
		fault: func(b *box) {
			b.addresses("2001:db8:1::1/64", "2001:db8:2::1/64").forOthers("Ip6", 10, 20)
		},
	},
	{
		name: "a few packets are too big", check: "PATH-1", severity: Warning,
		change: func(b *box) { b.s.After.SNMP["Ip.FragFails"], b.s.After.SNMP["Ip.InReceives"] = 10, 201000 },
		fault:  func(b *box) { b.s.After.SNMP["Ip.FragFails"], b.s.After.SNMP["Ip.InReceives"] = 300, 201000 },
	},
	{
		name: "connection tracking drops, and has room", check: "CT-1", severity: Critical,
		change: func(b *box) { b.s.After.Conntrack.Drop = 1 },
		fault:  func(b *box) { b.s.After.Conntrack.Drop, b.s.After.Conntrack.Count = 1, 230000 },
	},
	{
		name: "an active queue management drops", check: "QDISC-1", severity: Warning,
		change: func(b *box) { b.queueing("fq_codel") },
		fault:  func(b *box) { b.queueing("pfifo_fast") },
	},
	{
		name: "cards on another node of an idle machine", check: "IRQ-2", severity: Warning,
		change: func(b *box) { b.far().cores(1, 0, 1, 2, 3) },
		fault:  func(b *box) { b.far() },
	},
	{
		name: "all cores at their common turbo", check: "PWR-1", severity: Warning,
		change: func(b *box) { b.cores(82, 0, 1, 2, 3).s.CPUs[2].MHz = 1200 },
		fault:  func(b *box) { b.cores(82, 0, 1, 2, 3).s.CPUs[2].MHz = 1200; b.s.CPUs[2].Governor = "schedutil" },
	},
	{
		name: "a program on a core that serves next to nothing", check: "CPU-3", severity: Warning,
		change: func(b *box) {
			b.traffic("eth0", 80, 30, 40, 20, 10).traffic("eth1", 80, 30, 40, 20, 10).cores(1, 0, 2, 3).core(1, 0, 3, 97)
		},
		fault: func(b *box) { b.core(1, 0, 3, 97) },
	},
	{
		name: "turbo of all cores under intel_pstate", check: "PWR-1", severity: Warning,
		change: func(b *box) { b.clock(2100, 3700).cores(82, 0, 1, 2, 3) },
		fault:  func(b *box) { b.clock(800, 3700).cores(82, 0, 1, 2, 3) },
	},
	{
		name: "a governor that sees room", check: "PWR-1", severity: Warning,
		change: func(b *box) { b.clock(1200, 3400).cores(66, 0, 1, 2, 3) },
		fault:  func(b *box) { b.clock(1200, 3400).cores(85, 0, 1, 2, 3) },
	},
	{
		name: "fq_codel under mq drops", check: "QDISC-1", severity: Warning,
		change: func(b *box) { b.multiqueue("fq_codel") },
		fault:  func(b *box) { b.multiqueue("pfifo_fast") },
	},
	{
		name: "cake on an intermediate device drops below its rate", check: "IFB-1", severity: Critical,
		change: func(b *box) { b.ingress("cake", 250, 0, 5) },
		fault:  func(b *box) { b.ingress("tbf", 250, 0, 5) },
	},
	{
		name: "a shaper that held back a burst", check: "IFB-1", severity: Critical,
		change: func(b *box) { b.ingress("tbf", 250, 90, 5) },
		fault:  func(b *box) { b.ingress("tbf", 250, 0, 5) },
	},
	{
		name: "an intermediate device at the rate that it was told", check: "IFB-1", severity: Warning,
		change: func(b *box) { b.ingress("cake", 395, 0, 45) },
		fault:  func(b *box) { b.ingress("cake", 250, 0, 45) },
	},
	{
		name: "an intermediate device that holds bursts back", check: "IFB-1", severity: Warning,
		change: func(b *box) { b.ingress("cake", 250, 900, 45) },
		fault:  func(b *box) { b.ingress("cake", 150, 900, 45) },
	},
	{
		name: "a queue for each core of the card's own node", check: "RSS-2", severity: Warning,
		change: func(b *box) { b.wide(true) },
		fault:  func(b *box) { b.wide(false) },
	},
	{
		name: "RPS to the only other core", check: "RPS-1", severity: Critical,
		change: func(b *box) { b.single("1") },
		fault:  func(b *box) { b.single("0") },
	},
	{
		name: "a shared host takes a little", check: "VIRT-1", severity: Critical,
		change: func(b *box) { b.core(2, 63, 0, 0).steal(2, 40) },
		fault:  func(b *box) { b.core(2, 80, 0, 0).steal(2, 120) },
	},
	{
		name: "a modem at 100 Mbit/s", check: "LINK-1", severity: Warning,
		change: func(b *box) {
			b.s.Interfaces[1].Mbit = 100
			b.less("eth1", 9000)
			l := b.s.After.Links["eth1"]
			l.RxBytes, l.TxBytes, l.TxPackets = 9e6, 0, 0
			b.s.After.Links["eth1"] = l
		},
		fault: func(b *box) { b.s.Interfaces[1].Mbit = 100 },
	},
	{
		name: "an allowance of a cloud that is not used up", check: "VIRT-2", severity: Critical,
		change: func(b *box) { b.counted("eth0", "pps_allowance_exceeded", 0) },
		fault:  func(b *box) { b.counted("eth0", "pps_allowance_exceeded", 9000) },
	},
	{
		name: "halves of datagrams that came before", check: "FRAG-1", severity: Warning,
		change: func(b *box) { b.stack("Ip.ReasmFails", 40).stack("Ip.ReasmTimeout", 40) },
		fault: func(b *box) {
			b.stack("Ip.ReasmFails", 40).stack("Ip.ReasmTimeout", 40).stack("Ip.ReasmReqds", 400)
		},
	},
	{
		name: "a program that judges packets starts again", check: "NFQ-1", severity: Critical,
		change: func(b *box) {
			b.judged(NFQueue{PortID: 700, Given: 900000, Dropped: 40}, NFQueue{PortID: 900, Given: 50000})
		},
		fault: func(b *box) {
			b.judged(NFQueue{PortID: 700, Given: 900000, Dropped: 40}, NFQueue{PortID: 900, Given: 50000, Dropped: 900})
		},
	},
	{
		name: "the same, read without its port", check: "NFQ-1", severity: Critical,
		change: func(b *box) { b.judged(NFQueue{Given: 900000, Dropped: 40}, NFQueue{Given: 50000}) },
		fault: func(b *box) {
			b.judged(NFQueue{Given: 900000, Dropped: 4000}, NFQueue{Given: 50000, Dropped: 900})
		},
	},
	{
		name: "a switch's port without the speeds between 1,000 and 10,000", check: "LINK-1", severity: Warning,
		change: func(b *box) { b.between(1000) },
		fault:  func(b *box) { b.between(5000) },
	},
	{
		name: "a tunnel whose far ends each packet brings", check: "PATH-1", severity: Warning,
		change: func(b *box) { b.over("cilium_vxlan", "vxlan", 1500).external("cilium_vxlan") },
		fault:  func(b *box) { b.over("cilium_vxlan", "vxlan", 1500) },
	},
	{
		name: "a tunnel of Open vSwitch", check: "PATH-1", severity: Warning,
		change: func(b *box) { b.over("genev_sys_6081", "geneve", 65000) },
		fault:  func(b *box) { b.over("geneve0", "geneve", 1500) },
	},
	{
		name: "packets of an external tunnel are whole", check: "PATH-1", severity: Warning,
		change: func(b *box) { b.over("cilium_vxlan", "vxlan", 1500).external("cilium_vxlan") },
		fault: func(b *box) {
			b.over("cilium_vxlan", "vxlan", 1500).external("cilium_vxlan").stack("Ip.FragOKs", 20).stack("Ip.InReceives", 800000)
		},
	},
	{
		name: "a kernel that does not enforce the limit of destinations", check: "DST-1", severity: Critical,
		change: func(b *box) { b.destinations(9000, "5.15.0") },
		fault:  func(b *box) { b.destinations(4300, "5.15.0") },
	},
	{
		name: "the hypervisor takes time that nobody misses", check: "VIRT-1", severity: Warning,
		change: func(b *box) { b.core(2, 2, 0, 0).steal(2, 60) },
		fault:  func(b *box) { b.core(2, 30, 0, 0).steal(2, 60) },
	},
})

// counted makes a counter of a card's driver grow from 0.
func (b *box) counted(name, key string, n uint64) *box {
	b.s.Before.Statistics[name][key], b.s.After.Statistics[name][key] = 0, n
	return b
}

// errors adds to the kernel's counters of a card's link.
func (b *box) errors(name string, more Link) *box {
	l := b.s.After.Links[name]
	l.RxErrors, l.TxErrors, l.CarrierChanges = l.RxErrors+more.RxErrors, l.TxErrors+more.TxErrors, l.CarrierChanges+more.CarrierChanges
	l.RxDropped, l.TxTimeouts = l.RxDropped+more.RxDropped, l.TxTimeouts+more.TxTimeouts
	b.s.After.Links[name] = l
	return b
}

// judged sets the queue of packets for a program at the two samples.
func (b *box) judged(before, after NFQueue) {
	b.s.Before.NFQueues, b.s.After.NFQueues = []NFQueue{before}, []NFQueue{after}
}

// between gives eth1, a card of up to 5,000 Mbit/s at 1,000, a partner of 10,000, and the fastest
// speed that both have.
func (b *box) between(common int) {
	n := &b.s.Interfaces[1]
	n.Mbit, n.MaxMbit, n.Offers = 1000, 5000, &Offers{Autoneg: true, Mbit: 5000, Partner: 10000, Common: common}
	l := b.s.Before.Links["eth1"]
	l.RxBytes, l.RxPackets = l.RxBytes+9e8, l.RxPackets+700000
	b.s.After.Links["eth1"] = l
}

// external lets a tunnel's far ends come with each packet.
func (b *box) external(name string) *box {
	for i := range b.s.Interfaces {
		b.s.Interfaces[i].External = b.s.Interfaces[i].External || b.s.Interfaces[i].Name == name
	}
	b.s.Before.SNMP["Ip.FragOKs"], b.s.After.SNMP["Ip.FragOKs"] = 40, 40
	return b
}

// less leaves a card this number of received packets.
func (b *box) less(name string, packets uint64) *box {
	l := b.s.After.Links[name]
	l.RxPackets = packets
	b.s.After.Links[name] = l
	return b
}

func (b *box) chain() *box {
	b.s.Chains = []Chain{{Name: "nftables inet filter forward", Hook: "forward", Policy: "drop"}}
	return b
}

// forOthers makes a box without forwarding receive packets, some of them for other hosts.
func (b *box) forOthers(family string, others, received uint64) {
	key := map[string]string{"Ip": "net.ipv4.ip_forward", "Ip6": "net.ipv6.conf.all.forwarding"}[family]
	b.s.Sysctls[key] = "0"
	b.s.After.SNMP = maps.Clone(b.s.Before.SNMP)
	b.s.After.SNMP[family+".InAddrErrors"] += others
	b.s.After.SNMP[family+".InReceives"] += received
}

// addresses gives each card an address.
func (b *box) addresses(each ...string) *box {
	for i, a := range each {
		b.s.Interfaces[i].Addresses = []netip.Prefix{netip.MustParsePrefix(a)}
	}
	return b
}

// bridged makes all cards ports of one bridge.
func (b *box) bridged() *box {
	for i := range b.s.Interfaces {
		b.s.Interfaces[i].Master = "br0"
	}
	b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "br0", Kind: "bridge", Up: true, MTU: 1500})
	return b
}

// far puts cpu2 and cpu3 on node 1. The cards are on node 1, and their queues on node 0.
func (b *box) far() *box {
	b.nodes()
	for i := range b.s.Interfaces {
		n := &b.s.Interfaces[i]
		n.Node = b.s.CPUs[3].Node
		for q := range n.RxQueues {
			b.serve(n.Name, q, q%2)
		}
	}
	for _, c := range []*Counters{b.s.Before, b.s.After} {
		c.IRQs = map[int]map[int]uint64{}
	}
	return b
}

// single leaves the box one card with one queue, which fills cpu0, and sets its RPS.
func (b *box) single(rps string) {
	fresh := newBox(2)
	fresh.card("eth0", "igb", 1000, 1, 1).RPS = []string{rps}
	fresh.traffic("eth0", 400, 80000).cores(96, 0)
	*b = *fresh
}

func (b *box) queueing(kind string) {
	b.s.Before.Qdiscs = []Qdisc{{Interface: "eth0", Kind: kind, Handle: "8001:0", Parent: "root"}}
	b.s.After.Qdiscs = []Qdisc{{Interface: "eth0", Kind: kind, Handle: "8001:0", Parent: "root", Packets: 800000, Drops: 60}}
}

// clock makes all cores run at now of most MHz, with intel_pstate's default settings.
func (b *box) clock(now, most int) *box {
	for i := range b.s.CPUs {
		c := &b.s.CPUs[i]
		c.Governor, c.Scaling, c.MHz, c.MaxMHz = "powersave", "intel_pstate", now, most
	}
	return b
}

// multiqueue makes mq count the drops of its two queues' disciplines.
func (b *box) multiqueue(kind string) {
	b.s.Before.Qdiscs = []Qdisc{{Interface: "eth0", Kind: "mq", Handle: "0:0", Parent: "root"}, {Interface: "eth0", Kind: kind, Handle: "0:0", Parent: "0:1"}, {Interface: "eth0", Kind: kind, Handle: "0:0", Parent: "0:2"}}
	b.s.After.Qdiscs = []Qdisc{{Interface: "eth0", Kind: "mq", Handle: "0:0", Parent: "root", Packets: 800000, Drops: 60}, {Interface: "eth0", Kind: kind, Handle: "0:0", Parent: "0:1", Packets: 500000, Drops: 40},
		{Interface: "eth0", Kind: kind, Handle: "0:0", Parent: "0:2", Packets: 300000, Drops: 20}}
}

// ingress shapes eth0's received packets to 400 Mbit/s on an intermediate device with one
// queue. The device sends mbit of them. Packets take the softirq share of each core.
func (b *box) ingress(kind string, mbit, overlimits uint64, softirq float64) {
	b.cores(softirq, 0, 1, 2, 3)
	b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "ifb0", Kind: "ifb", Up: true, MTU: 1500, TxQueues: 1, RxQueues: 1})
	b.s.Before.Links["ifb0"], b.s.After.Links["ifb0"] = Link{}, Link{RxPackets: 700000, TxPackets: 699000}
	q := Qdisc{Interface: "ifb0", Kind: kind, Handle: "1:0", Parent: "root", RateBits: 400e6}
	b.s.Before.Qdiscs = []Qdisc{q}
	q.Bytes, q.Packets, q.Drops, q.Overlimits = mbit*1e6/8*sampled, 700000, 900, overlimits
	b.s.After.Qdiscs = []Qdisc{q}
}

// wide is a box with two sockets. The card uses four of its 63 queues; own says whether
// the card's own socket serves them.
func (b *box) wide(own bool) {
	fresh := newBox(8)
	n := fresh.card("eth0", "mlx5_core", 100000, 4, 63)
	if own {
		fresh.nodes()
	}
	n.PCI.Width, n.PCI.MaxWidth = 16, 16
	*b = *fresh.traffic("eth0", 400, 300000, 300000, 300000, 300000).cores(85, 0, 1, 2, 3)
}

// steal makes the hypervisor take this many thousandths of a core's time.
func (b *box) steal(id int, ticks uint64) *box {
	c := b.s.After.CPUs[id]
	c.Steal, c.Idle = c.Steal+ticks, c.Idle-ticks
	b.s.After.CPUs[id] = c
	return b
}

func TestHarmless(t *testing.T) {
	for _, h := range harmless {
		t.Run(h.name, func(t *testing.T) {
			for _, c := range []struct {
				change func(b *box)
				want   Severity
			}{{h.change, Notice}, {h.fault, h.severity}} {
				b := newBox(4)
				b.card("eth0", "ixgbe", 10000, 4, 4)
				b.card("eth1", "ixgbe", 10000, 4, 4)
				b.loaded().cores(30, 0, 1, 2, 3)
				c.change(b)
				r, err := Examine(b.s, nil)
				if err != nil {
					t.Fatal(err)
				}
				got := Notice
				if f := findingOf(r, h.check); f != nil {
					got = f.Severity
				}
				if got != c.want {
					t.Errorf("%s: %s, want %s: %+v", h.check, got, c.want, findingOf(r, h.check))
				}
			}
		})
	}
}
