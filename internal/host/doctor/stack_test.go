package doctor

import (
	"slices"
	"strings"
	"testing"
)

// stackChanges are those of the kernel's own stack, of memory, cards and slots.
var stackChanges = []change{
	{"FRAG-1", Critical, func(b *box) { b.stack("Ip.ReasmFails", 31000).stack("Ip.ReasmReqds", 190000) }},
	{"FRAG-1", Warning, func(b *box) {
		b.stack("Ip.ReasmFails", 3000).stack("Ip.ReasmTimeout", 3000).stack("Ip.ReasmReqds", 190000)
	}},
	{"SOCK-1", Critical, func(b *box) { b.stack("Udp.RcvbufErrors", 4100).stack("Udp.InDatagrams", 78000) }},
	{"SOCK-1", Warning, func(b *box) { b.stack("Udp.RcvbufErrors", 60).stack("Udp.InDatagrams", 94000) }},
	{"SUM-1", Critical, func(b *box) { b.stack("Udp.InCsumErrors", 310).stack("Udp.InDatagrams", 420) }},
	{"SUM-1", Warning, func(b *box) { b.stack("Tcp.InCsumErrors", 60).stack("Tcp.InSegs", 900000) }},
	{"ROUTE-1", Warning, func(b *box) { b.stack("IpExt.InNoRoutes", 90000).stack("Ip.InReceives", 800000) }},
	{"ROUTE-1", Warning, func(b *box) {
		b.stack("Ip.InHdrErrors", 90000).stack("Icmp.OutTimeExcds", 900).stack("Ip.InReceives", 800000)
	}},
	{"TUN-2", Critical, func(b *box) { b.refusing("wg0", "wireguard", 4000) }},
	{"TUN-2", Warning, func(b *box) { b.refusing("vxlan0", "vxlan", 400) }},
	{"IPSEC-2", Critical, func(b *box) { b.stack("Xfrm.InStateSeqError", 9000).stack("Ip.InReceives", 800000) }},
	{"IPSEC-2", Warning, func(b *box) { b.stack("Xfrm.InNoStates", 90).stack("Ip.InReceives", 800000) }},
	{"NFQ-1", Critical, func(b *box) {
		b.s.Before.NFQueues = []NFQueue{{Number: 0, Program: "suricata", Given: 4294967000, Dropped: 40}}
		b.s.After.NFQueues = []NFQueue{{Number: 0, Program: "suricata", Given: 90000, Dropped: 4040, Unread: 60, Waiting: 1024}}
	}},
	{"DST-1", Critical, func(b *box) { b.destinations(4096, "4.19.0-6-amd64") }},
	{"DST-1", Warning, func(b *box) { b.destinations(3500, "6.2.16") }},
	{"SOCK-2", Critical, func(b *box) { b.stack("TcpExt.ListenOverflows", 900).stack("Tcp.PassiveOpens", 20000) }},
	{"SOCK-2", Warning, func(b *box) { b.stack("TcpExt.ListenOverflows", 20).stack("Tcp.PassiveOpens", 20000) }},
	{"SOCK-2", Critical, func(b *box) { b.stack("TcpExt.TCPReqQFullDrop", 500) }},
	{"MEM-2", Warning, func(b *box) { b.stack("TcpExt.TCPMemoryPressures", 2) }},
	{"MEM-2", Critical, func(b *box) { b.stack("TcpExt.TCPMemoryPressures", 2).stack("TcpExt.TCPAbortOnMemory", 7) }},
	{"PATH-2", Warning, func(b *box) { b.stack("Tcp.OutSegs", 90000).stack("Tcp.RetransSegs", 2500) }},
	{"PATH-2", Warning, func(b *box) { b.stack("Tcp.OutSegs", 310).stack("Tcp.RetransSegs", 62) }},
	{"RPF-1", Warning, func(b *box) {
		b.s.Sysctls["net.ipv4.conf.eth0.rp_filter"] = "1"
		b.stack("TcpExt.IPReversePathFilter", 30000).stack("Ip.InReceives", 800000)
	}},
	{"MEM-1", Critical, func(b *box) { b.counted("eth0", "rx_skb_alloc_fail", 9000).errors("eth0", Link{RxDropped: 8000}) }},
	{"STORM-1", Warning, func(b *box) { b.counted("eth0", "rx_broadcast", 700000) }},
	{"STORM-1", Critical, func(b *box) { b.counted("eth0", "rx_broadcast", 700000).cores(96, 0, 1, 2, 3) }},
	{"PATH-1", Warning, func(b *box) { b.over("vxlan0", "vxlan", 1480) }},
	{"RPS-1", Warning, func(b *box) { b.guest(72, 120000) }},
	{"CPU-4", Warning, func(b *box) { b.cores(70, 0, 1, 2, 3).less("eth0", 60000).less("eth1", 60000).unprocessed() }},
	{"CPU-4", Warning, func(b *box) { b.cores(70, 0).watchedKinds(map[string]float64{"RCU": 4, "TIMER": 2, "NET_RX": 1}) }},
	{"CPU-4", Critical, func(b *box) { b.cores(95, 0).watchedKinds(map[string]float64{"RCU": 7, "NET_RX": 2}) }},
	{"HANG-1", Critical, func(b *box) { b.counted("eth0", "queue_4_tx_missed_tx", 361).errors("eth0", Link{CarrierChanges: 2}) }},
	{"HANG-1", Critical, func(b *box) { b.counted("eth0", "tx_timeout_count", 1) }},
	{"HANG-1", Critical, func(b *box) { b.counted("eth0", "InDroppedDma", 402).less("eth0", b.s.Before.Links["eth0"].RxPackets) }},
	{"FC-1", Warning, func(b *box) { b.counted("eth0", "rx_flow_control_packets", 26000) }},
	{"FC-1", Warning, func(b *box) { b.counted("eth0", "p06_TxPause", 7054) }},
	{"HANG-1", Critical, func(b *box) { b.errors("eth0", Link{TxTimeouts: 2}) }},
	{"IRQ-6", Warning, func(b *box) {
		for _, id := range []int{2, 3} {
			b.s.CPUs[id].Isolated = true
			b.s.After.CPUs[id] = b.s.Before.CPUs[id]
			b.core(id, 7, 5, 40)
		}
	}},
	{"WIFI-1", Warning, func(b *box) { b.wireless(9000, 5900, 0, 0, 0) }},
	{"WIFI-1", Notice, func(b *box) { b.wireless(9000, 1900, 0, 0, 0) }},
	{"WIFI-1", Warning, func(b *box) { b.wireless(9000, 0, 9300, 700, 196) }},
	{"WIFI-1", Warning, func(b *box) { b.wireless(90000, 0, 0, 0, 256-81) }},
	{"PCI-2", Warning, func(b *box) { b.bus("eth0", "BadTLP", 300) }},
	{"PCI-2", Critical, func(b *box) { b.bus("eth0", "BadTLP", 300).lose("eth0", 5000) }},
	{"SHAPE-1", Warning, func(b *box) {
		b.disciplines(Qdisc{Interface: "eth0", Kind: "ingress", Handle: "ffff:0", Parent: "ingress", Packets: 4100, Drops: 260})
	}},
	{"PCI-1", Warning, func(b *box) { b.s.Interfaces[0].USB, b.s.Interfaces[0].Mbit = 100, 1000 }},
	{"LAG-1", Warning, func(b *box) {
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "bond0", Kind: "bond", Up: true, Bond: &Bond{Mode: "802.3ad", Members: []string{"eth0", "eth1"}, Aggregates: map[string]int{"eth0": 1, "eth1": 2}}})
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

// refusing adds a tunnel that sends 100,000 packets and refuses others.
func (b *box) refusing(name, kind string, refused uint64) {
	b.s.Interfaces = append(b.s.Interfaces, Interface{Name: name, Kind: kind, Up: true, MTU: 1400})
	b.s.Before.Links[name], b.s.After.Links[name] = Link{}, Link{TxPackets: 100000, TxErrors: refused}
}

// wireless makes eth0 a Wi-Fi card that sent 100,000 frames in ten seconds.
func (b *box) wireless(retries, failed, taken, own, signal uint64) {
	b.counted("eth0", "tx_retries", retries).counted("eth0", "tx_retry_failed", failed).counted("eth0", "signal", signal)
	b.counted("eth0", "ch_time", 10000).counted("eth0", "ch_time_busy", taken).counted("eth0", "ch_time_tx", own).counted("eth0", "ch_time_rx", 0)
	l := b.s.After.Links["eth0"]
	l.TxPackets = b.s.Before.Links["eth0"].TxPackets + 100000
	b.s.After.Links["eth0"] = l
}

// destinations sets the routes and cached destinations of IPv6, of 4,096.
func (b *box) destinations(n int, kernel string) *box {
	b.s.Host.Kernel, b.s.Sysctls["net.ipv6.route.max_size"] = kernel, "4096"
	b.s.After.Destinations6 = &n
	return b
}

// bus lets a counter of a card's slot grow.
func (b *box) bus(name, kind string, by uint64) *box {
	b.s.Before.Bus[name], b.s.After.Bus[name] = map[string]uint64{kind: 3}, map[string]uint64{kind: 3 + by}
	return b
}

// unprocessed takes the packets out of the stack's counters.
func (b *box) unprocessed() *box {
	for id := range b.s.After.Softnet {
		b.s.After.Softnet[id] = b.s.Before.Softnet[id]
	}
	return b
}

// watchedKinds lets the programs in the kernel count softirqs of cpu0, in seconds.
func (b *box) watchedKinds(kinds map[string]float64) *box {
	b.s.Watched = &Watched{Seconds: sampled, Cores: map[int]CoreWatch{0: {Softirqs: kinds, Received: map[string]Polled{"eth0": {Packets: 200000}}}}}
	return b
}

// TestSegmentation checks that the offload of large packets is tried only where so much is
// sent again that the way alone does not explain it, and where it is on.
func TestSegmentation(t *testing.T) {
	for _, c := range []struct {
		again  uint64
		on     bool
		driver string
		want   bool
	}{{60000, true, "r8169", true}, {5000, true, "r8169", true}, {2000, true, "r8169", false}, {60000, false, "r8169", false}, {60000, true, "virtio_net", false}} {
		b := newBox(4)
		b.card("eth0", c.driver, 1000, 4, 4).Features["tx-tcp-segmentation"] = c.on
		b.traffic("eth0", 800, 9000, 9000, 9000, 9000).stack("Tcp.OutSegs", 90000).stack("Tcp.RetransSegs", c.again)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := false
		for _, f := range r.Findings {
			for _, m := range f.Remedies {
				got = got || f.Check == "PATH-2" && m.Command == "ethtool -K eth0 tso off gso off"
			}
		}
		if got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// over adds a tunnel over eth0, whose packets have up to 1,500 bytes.
func (b *box) over(name, kind string, mtu int) *box {
	b.s.Interfaces = append(b.s.Interfaces, Interface{Name: name, Kind: kind, Up: true, MTU: mtu, Parent: "eth0"})
	b.s.Before.Links[name], b.s.After.Links[name] = Link{}, Link{RxPackets: 50000, TxPackets: 40000}
	return b
}

// guest adds a card of a hypervisor with one queue, which cpu3 serves.
func (b *box) guest(softirq float64, perSecond int) *box {
	b.s.Host.Hypervisor = true
	n := b.card("ens4", "virtio_net", 0, 1, 1)
	n.MaxMbit = 0
	return b.serve("ens4", 0, 3).traffic("ens4", 120, perSecond*2).less("eth1", 0).core(3, softirq, 4, 4)
}

// TestFlapTogether checks that ports of a bond that flap together are no matter of cables.
func TestFlapTogether(t *testing.T) {
	for other, want := range map[uint64]string{6: "lacp_rate", 0: "cable"} {
		b := newBox(4)
		b.card("eth0", "ixgbe", 10000, 4, 4)
		b.card("eth1", "ixgbe", 10000, 4, 4)
		b.s.Interfaces[0].Master, b.s.Interfaces[1].Master = "bond0", "bond0"
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "bond0", Kind: "bond", Up: true, Bond: &Bond{Mode: "802.3ad", Members: []string{"eth0", "eth1"}}})
		b.loaded().errors("eth0", Link{CarrierChanges: 6}).errors("eth1", Link{CarrierChanges: other})
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f := findingOf(r, "ERR-1"); f == nil || !strings.Contains(f.Remedies[0].Text, want) {
			t.Errorf("%d changes of the other: %+v", other, f)
		}
	}
}

// TestUSBCard checks that the interrupt of a USB controller, which the collector gives to the
// card on it, tells the core that receives: two cards on one core are found.
func TestUSBCard(t *testing.T) {
	for _, name := range []string{"xhci-hcd:usb4", "xhci_hcd"} {
		b := newBox(4)
		b.card("eth0", "rk_gmac-dwmac", 1000, 1, 1)
		b.card("eth1", "r8152", 1000, 1, 1).PCI = nil
		b.serve("eth1", 0, 0).traffic("eth0", 1400, 40000).traffic("eth1", 1400, 40000).cores(97, 0)
		b.s.IRQs[1].Name = name
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict.Check != "IRQ-1" {
			t.Errorf("%s: %s: %s", name, r.Verdict.Check, r.Verdict.Sentence)
		}
	}
}

// TestOffers checks what the two ends of a cable offer each other: it tells a card that offers
// too little from a cable and from the other port.
func TestOffers(t *testing.T) {
	for _, c := range []struct {
		name       string
		mbit, most int
		offers     *Offers
		says       string // "": no finding
		command    string
	}{
		{"nothing known", 100, 1000, nil, "and its port does 1,000", "cable-test"},
		{"offers too little", 1000, 2500, &Offers{Autoneg: true, Mbit: 1000, Partner: 2500}, "offers no more than 1,000, the other end up to 2,500", "advertise 0x80000000002f"},
		{"offers 100", 100, 1000, &Offers{Autoneg: true, Mbit: 100, Partner: 0}, "offers no more than 100", "advertise 0x2f"},
		{"both offer more", 100, 1000, &Offers{Autoneg: true, Mbit: 1000, Partner: 1000}, "as both ends offer", "cable-test"},
		{"both offer 2,500", 1000, 2500, &Offers{Autoneg: true, Mbit: 2500, Partner: 2500}, "as both ends offer", "cable-test"},
		{"the other end", 100, 1000, &Offers{Autoneg: true, Mbit: 1000, Partner: 100}, "the other end offers no more", ""},
		{"set by hand", 100, 1000, &Offers{Autoneg: false}, "does not negotiate", "autoneg on"},
		{"a switch of 1,000", 1000, 2500, &Offers{Autoneg: true, Mbit: 2500, Partner: 1000}, "", ""},
		{"both limited", 1000, 2500, &Offers{Autoneg: true, Mbit: 1000, Partner: 1000}, "", ""},
		{"a driver that says little", 1000, 2500, &Offers{Autoneg: true, Mbit: 1000, Partner: 0}, "", ""},
		{"the other end does 100, 1,000 and 10,000", 1000, 5000, &Offers{Autoneg: true, Mbit: 5000, Partner: 10000, Common: 1000}, "", ""},
		{"both do 5,000", 1000, 5000, &Offers{Autoneg: true, Mbit: 5000, Partner: 10000, Common: 5000}, "as both ends offer", "cable-test"},
		{"common speed not known", 1000, 5000, &Offers{Autoneg: true, Mbit: 5000, Partner: 10000}, "", ""},
		{"the other end does 100 and 10,000", 100, 1000, &Offers{Autoneg: true, Mbit: 1000, Partner: 10000, Common: 100}, "the other end offers no faster speed that this port has", ""},
		{"a port that is set to 1,000", 1000, 2500, &Offers{}, "", ""},
		{"more offered would not be common", 1000, 10000, &Offers{Autoneg: true, Mbit: 1000, Partner: 2500, Common: 1000, Reach: 1000}, "", ""},
		{"a faster partner, and speeds not known", 1000, 2500, &Offers{Autoneg: true, Mbit: 1000, Partner: 10000, Common: 1000}, "", ""},
		{"more offered would be common", 1000, 10000, &Offers{Autoneg: true, Mbit: 1000, Partner: 2500, Common: 1000, Reach: 2500}, "offers no more than 1,000, the other end up to 2,500", "advertise"},
	} {
		b := newBox(4)
		n := b.card("eth1", "r8125", c.mbit, 1, 1)
		n.MaxMbit, n.Offers = c.most, c.offers
		b.traffic("eth1", 1400, c.mbit*60) // 67 %
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "LINK-1")
		if (f != nil) != (c.says != "") {
			t.Errorf("%s: %+v", c.name, f)
			continue
		}
		if f != nil && (f.Severity != Warning || !strings.Contains(f.Says, c.says) || !strings.Contains(f.Remedies[0].Command, c.command)) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// TestStuckProgram checks that a program which does not read is told from one that is too
// slow: what came would have fit into its buffer.
func TestStuckProgram(t *testing.T) {
	for size, want := range map[string]string{"8388608": "stuck", "212992": "SO_REUSEPORT"} {
		b := newBox(4)
		b.card("eth0", "igb", 1000, 4, 4)
		b.stack("Udp.RcvbufErrors", 160).stack("Udp.InDatagrams", 1400)
		b.s.Sysctls["net.core.rmem_default"], b.s.Sysctls["net.core.rmem_max"] = size, "16777216"
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f := findingOf(r, "SOCK-1"); f == nil || !strings.Contains(f.Remedies[0].Text, want) {
			t.Errorf("%s: %+v", size, f)
		}
	}
}

// TestOrphans checks that connections which were aborted because too many wait for their far
// end are told from those for which TCP has no memory.
func TestOrphans(t *testing.T) {
	for pages, want := range map[int]string{4000: "net.ipv4.tcp_max_orphans=65536", 130000: "net.ipv4.tcp_mem="} {
		b := newBox(4)
		b.card("eth0", "igb", 1000, 4, 4)
		b.stack("TcpExt.TCPAbortOnMemory", 1900)
		b.s.Sysctls["net.ipv4.tcp_mem"], b.s.Sysctls["net.ipv4.tcp_max_orphans"] = "94944 126592 189888", "16384"
		b.s.After.TCPSockets = &TCPSockets{Orphans: 16400, Pages: pages}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "MEM-2")
		if f == nil || !slices.ContainsFunc(f.Remedies[:min(2, len(f.Remedies))], func(m Remedy) bool { return strings.Contains(m.Command, want) }) {
			t.Errorf("%d: %+v", pages, f)
		}
	}
}

// TestGuestsTap checks that a guest which does not fetch its packets is named, and that its tap
// is no tunnel, although a core is busy with programs.
func TestGuestsTap(t *testing.T) {
	for master, want := range map[string]string{"br0": "the guest behind tap0 does not fetch", "": "the program of tap0"} {
		b := newBox(4)
		b.card("eth0", "ixgbe", 10000, 4, 4)
		b.traffic("eth0", 900, 9000, 9000, 9000, 9000).cores(6, 0, 1, 2).core(3, 6, 18, 50)
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "tap0", Kind: "tun", Up: true, MTU: 1500, Master: master})
		b.s.Before.Links["tap0"], b.s.After.Links["tap0"] = Link{}, Link{RxPackets: 132000, TxPackets: 81000, TxDropped: 11000}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "QDISC-1")
		if f == nil || f.Severity != Warning || !strings.Contains(f.Says, want) || master != "" && r.Verdict.Check != "QDISC-1" {
			t.Errorf("master %q: verdict %s: %s; %+v", master, r.Verdict.Check, r.Verdict.Sentence, f)
		}
		if tunnel := findingOf(r, "TUN-1"); (tunnel == nil) != (master != "") {
			t.Errorf("master %q: %+v", master, tunnel)
		}
	}
}

// TestOwnCore checks that a full core which receives all packets is left out of RPS's mask, if
// the others have room.
func TestOwnCore(t *testing.T) {
	for _, c := range []struct {
		mask string
		room float64 // softirq of the other cores
		want string  // the mask of the remedy; "": no finding
	}{{"0-3", 25, "echo d >"}, {"0-3", 75, ""}, {"0,2-3", 25, ""}} {
		b := newBox(4)
		b.card("eth0", "rk_gmac-dwmac", 1000, 1, 1).RPS = []string{c.mask}
		b.serve("eth0", 0, 1).traffic("eth0", 1300, 60000).cores(c.room, 0, 2, 3).core(1, 97, 1, 0)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "RPS-1")
		if (f != nil) != (c.want != "") || f != nil && (!strings.Contains(f.Remedies[0].Command, c.want) || r.Verdict.Check != "RPS-1") {
			t.Errorf("%+v: verdict %s: %s; %+v", c, r.Verdict.Check, r.Verdict.Sentence, f)
		}
	}
}

// TestSystemCalls checks that time in the kernel, without WireGuard, may be a program's.
func TestSystemCalls(t *testing.T) {
	b := newBox(4)
	b.card("eth0", "igb", 1000, 4, 4)
	b.traffic("eth0", 900, 9000, 9000, 9000, 9000).core(1, 8, 88, 3)
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f := findingOf(r, "CPU-3"); f == nil || !strings.Contains(f.Says, "system calls of a program") || !strings.Contains(f.Remedies[0].Text, "taskset") {
		t.Errorf("%+v", f)
	}
}

// TestDuplexMismatch checks that a card set to full duplex by hand, with damaged frames, is named
// before its frames; one that negotiates, or receives all whole, is not.
func TestDuplexMismatch(t *testing.T) {
	for _, c := range []struct {
		offers *Offers
		crc    uint64
		want   string
	}{{&Offers{}, 900, "LINK-1"}, {&Offers{Autoneg: true, Mbit: 100, Partner: 100}, 900, "ERR-1"}, {nil, 900, "ERR-1"}, {&Offers{}, 0, ""}} {
		b := newBox(4)
		b.card("eth0", "igb", 1000, 4, 4)
		b.card("eth1", "fec", 100, 1, 1).Offers = c.offers
		b.traffic("eth0", 900, 900, 800, 900, 850).traffic("eth1", 900, 5500).counted("eth1", "rx_crc_errors", c.crc)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "ERR-1")
		if r.Verdict.Check != c.want || c.want == "LINK-1" && (f == nil || f.Because != "LINK-1") {
			t.Errorf("%+v: verdict %s: %s; %+v", c, r.Verdict.Check, r.Verdict.Sentence, f)
		}
	}
}

// TestLongWaits checks that a core with time left is named whose ksoftirqd waits long for it. The
// scheduler's ordinary turns are no finding.
func TestLongWaits(t *testing.T) {
	for _, c := range []struct {
		cpu   int
		waits Waits
		want  bool
	}{
		{1, Waits{1300e6, 25}, true}, {1, Waits{1300e6, 900}, false}, {1, Waits{60e6, 11}, false},
		{3, Waits{1300e6, 25}, false}, // serves no queue
	} {
		b := newBox(4)
		b.card("eth0", "i40e", 10000, 3, 3)
		b.traffic("eth0", 600, 9000, 9000, 9000).cores(4, 0, 2).core(1, 4, 44, 4).core(3, 0, 44, 4)
		b.s.Before.Ksoftirqd, b.s.After.Ksoftirqd = map[int]Waits{c.cpu: {}}, map[int]Waits{c.cpu: c.waits}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "CPU-3")
		if (f != nil) != c.want || c.want && (r.Verdict.Check != "CPU-3" || !strings.Contains(f.Says, "52 ms at a time")) {
			t.Errorf("%+v: verdict %s: %s; %+v", c, r.Verdict.Check, r.Verdict.Sentence, f)
		}
	}
}

// TestPortsWithoutSamples checks that a bundle of settings alone is judged: nothing tells then
// whether frames arrive damaged.
func TestPortsWithoutSamples(t *testing.T) {
	b := newBox(4)
	b.card("eth1", "fec", 100, 1, 1).Offers = &Offers{}
	b.s.Before, b.s.After = nil, nil
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f := findingOf(r, "LINK-1"); f != nil {
		t.Errorf("%+v", f)
	}
}

// TestLateFragments checks the share of datagrams whose rest never comes. What runs out of time
// came 30 seconds earlier, so fewer fragments than that may have come between the samples.
func TestLateFragments(t *testing.T) {
	for _, c := range []struct {
		late, asked uint64
		want        string
		severity    Severity
	}{
		{3000, 190000, "the rest of 1.6 % of the datagrams", Warning},
		{40, 20, "the rest of 40 datagrams", Notice},
		{40, fewLost - 1, "the rest of 40 datagrams", Notice},
		{40, 0, "the rest of 40 datagrams", Notice},
	} {
		b := newBox(4)
		b.card("eth0", "ixgbe", 10000, 4, 4)
		b.traffic("eth0", 900, 9000, 9000, 9000, 9000).stack("Ip.ReasmFails", c.late).stack("Ip.ReasmTimeout", c.late).stack("Ip.ReasmReqds", c.asked)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "FRAG-1")
		if f == nil || f.Severity != c.severity || !strings.Contains(f.Says, c.want) || f.weight > 1 {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}

// TestUnreadSocket checks that many lost datagrams are critical only if they are a good part, and
// that a good part is critical only if they are many: a socket that nobody reads drops all of its own.
func TestUnreadSocket(t *testing.T) {
	for _, c := range []struct {
		lost, taken uint64
		want        Severity
	}{{12, 300, Warning}, {few - 1, 300, Warning}, {few, 30000, Critical}, {few, 3000000, Warning}} {
		b := newBox(4)
		b.card("eth0", "ixgbe", 10000, 4, 4)
		b.traffic("eth0", 900, 9000, 9000, 9000, 9000).stack("Udp.RcvbufErrors", c.lost).stack("Udp.InDatagrams", c.taken)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f := findingOf(r, "SOCK-1"); f == nil || f.Severity != c.want {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}

// TestDestinations checks what is said of a table of destinations: whether packets are lost already.
func TestDestinations(t *testing.T) {
	const unknown = -1
	for _, c := range []struct {
		n, refused int
		want       string
	}{
		{3500, unknown, "will be lost"}, {4090, unknown, "are lost"}, {4500, unknown, "are lost"}, {4600, unknown, ""},
		{4090, 0, "will be lost"}, {4300, 3, "will be lost"}, {4300, 40, "are lost"}, {3500, 40, "will be lost"},
	} {
		n, want := c.n, c.want
		b := newBox(4)
		b.card("eth0", "ixgbe", 10000, 4, 4)
		b.traffic("eth0", 900, 9000, 9000, 9000, 9000).destinations(n, "5.15.0")
		if c.refused != unknown {
			b.stack("Ip6.InNoRoutes", uint64(c.refused)).stack("Ip6.OutNoRoutes", 0)
			b.s.Before.SNMP["Ip6.InNoRoutes"], b.s.Before.SNMP["Ip6.OutNoRoutes"] = 0, 0
		}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f := findingOf(r, "DST-1"); (f != nil) != (want != "") || f != nil && !strings.Contains(f.Says, want) {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}
