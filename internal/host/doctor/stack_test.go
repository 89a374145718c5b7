package doctor

// stackChanges are those of the kernel's own stack, of memory, cards and slots.
var stackChanges = []change{
	{"FRAG-1", Critical, func(b *box) { b.stack("Ip.ReasmFails", 31000).stack("Ip.ReasmReqds", 190000) }},
	{"FRAG-1", Warning, func(b *box) {
		b.stack("Ip.ReasmFails", 3000).stack("Ip.ReasmTimeout", 3000).stack("Ip.ReasmReqds", 190000)
	}},
	{"SOCK-1", Critical, func(b *box) { b.stack("Udp.RcvbufErrors", 4100).stack("Udp.InDatagrams", 78000) }},
	{"SOCK-2", Critical, func(b *box) { b.stack("TcpExt.ListenOverflows", 900).stack("Tcp.PassiveOpens", 20000) }},
	{"SOCK-2", Warning, func(b *box) { b.stack("TcpExt.ListenOverflows", 20).stack("Tcp.PassiveOpens", 20000) }},
	{"SOCK-2", Critical, func(b *box) { b.stack("TcpExt.TCPReqQFullDrop", 500) }},
	{"MEM-2", Warning, func(b *box) { b.stack("TcpExt.TCPMemoryPressures", 2) }},
	{"MEM-2", Critical, func(b *box) { b.stack("TcpExt.TCPMemoryPressures", 2).stack("TcpExt.TCPAbortOnMemory", 7) }},
	{"PATH-2", Warning, func(b *box) { b.stack("Tcp.OutSegs", 90000).stack("Tcp.RetransSegs", 2500) }},
	{"RPF-1", Warning, func(b *box) {
		b.s.Sysctls["net.ipv4.conf.eth0.rp_filter"] = "1"
		b.stack("TcpExt.IPReversePathFilter", 30000).stack("Ip.InReceives", 800000)
	}},
	{"MEM-1", Critical, func(b *box) { b.counted("eth0", "rx_skb_alloc_fail", 9000).errors("eth0", Link{RxDropped: 8000}) }},
	{"STORM-1", Warning, func(b *box) { b.counted("eth0", "rx_broadcast", 700000) }},
	{"STORM-1", Critical, func(b *box) { b.counted("eth0", "rx_broadcast", 700000).cores(96, 0, 1, 2, 3) }},
	{"HANG-1", Critical, func(b *box) { b.counted("eth0", "tx_timeout_count", 1) }},
	{"HANG-1", Critical, func(b *box) { b.errors("eth0", Link{TxTimeouts: 2}) }},
	{"PCI-2", Warning, func(b *box) { b.bus("eth0", "BadTLP", 300) }},
	{"PCI-2", Critical, func(b *box) { b.bus("eth0", "BadTLP", 300).lose("eth0", 5000) }},
	{"SHAPE-1", Warning, func(b *box) {
		b.disciplines(Qdisc{Interface: "eth0", Kind: "ingress", Handle: "ffff:0", Parent: "ingress", Packets: 4100, Drops: 260})
	}},
	{"LAG-1", Warning, func(b *box) {
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "bond0", Kind: "bond", Up: true, Bond: &Bond{Mode: "802.3ad", Members: []string{"eth0", "eth7"}}}, Interface{Name: "eth7", Kind: "physical"})
	}},
}

// stack lets a counter of the kernel's stack grow.
func (b *box) stack(name string, by uint64) *box {
	b.s.After.SNMP[name] = b.s.Before.SNMP[name] + by
	return b
}

// bus lets a counter of a card's slot grow.
func (b *box) bus(name, kind string, by uint64) *box {
	b.s.Before.Bus[name], b.s.After.Bus[name] = map[string]uint64{kind: 3}, map[string]uint64{kind: 3 + by}
	return b
}
