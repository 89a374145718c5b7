package doctor

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPages checks that every check has a page, and every page a check.
func TestPages(t *testing.T) {
	var ids []string
	for _, c := range Checks() {
		if slices.Contains(ids, c.ID) {
			t.Errorf("%s twice", c.ID)
		}
		ids = append(ids, c.ID)
		page, err := Explain(strings.ToLower(c.ID))
		if err != nil || !strings.HasPrefix(page, "# "+c.ID+": ") || len(page) < 200 {
			t.Errorf("%s: %q, %v", c.ID, page, err)
		}
	}
	entries, err := os.ReadDir("pages")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(ids, strings.TrimSuffix(e.Name(), ".md")) {
			t.Errorf("pages/%s belongs to no check", e.Name())
		}
	}
	if _, err := Explain("RSS-99"); err == nil {
		t.Error("RSS-99 is explained")
	}
}

// TestNothingRead checks that no check judges an empty snapshot, and that the verdict
// does not call it fine.
func TestNothingRead(t *testing.T) {
	r, err := Examine(&Snapshot{Format: Format, Version: Version}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Checks {
		if c.State == Fine || c.State == Found {
			t.Errorf("%s: %s", c.ID, c.State)
		}
		if c.State == Unreadable && len(c.Why) == 0 {
			t.Errorf("%s does not say what it lacks", c.ID)
		}
	}
	if r.Verdict.Limit != LimitUnknown || strings.Contains(r.Verdict.Sentence, "Nothing is wrong") {
		t.Errorf("%+v", r.Verdict)
	}
}

func TestSkip(t *testing.T) {
	s := machines[1].build().s
	r, err := Examine(s, []string{"CPU-1", "RSS-1"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict.Severity != Notice || r.Verdict.Limit != LimitUnknown {
		t.Errorf("%+v", r.Verdict)
	}
	if lower, err := Examine(s, []string{"cpu-1", " rss-1"}); err != nil || lower.Verdict.Limit != r.Verdict.Limit {
		t.Errorf("in lower case: %v", err)
	}
	if _, err := Examine(s, []string{"CPU-9"}); err == nil {
		t.Error("a check that there is not was skipped")
	}
}

// TestUnseen checks that the verdict names what it could not see: without weir's
// counters, room on cores and links is not the whole story.
func TestUnseen(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(b *box)
		limit  Limit
		says   string
		unseen []string
	}{
		{"all seen", func(*box) {}, LimitFar, "Nothing is wrong here: ", nil},
		{"weir's counters", func(b *box) { b.s.Unreadable = map[string]string{"weir": "permission denied"} }, LimitUnknown, "STATE-1 (the state table is full) and NAT-1",
			[]string{"XDP-1", "FWD-2", "FWD-3", "MARK-1", "STATE-1", "NAT-1", "NAT-2"}},
		{"weir's counters, and the link is full", func(b *box) {
			b.s.Unreadable = map[string]string{"weir": "permission denied"}
			b.s.Interfaces[0].Mbit, b.s.Interfaces[0].MaxMbit = 500, 500
		}, LimitLink, "; FWD-2, FWD-3, MARK-1, STATE-1 and 3 more could not be checked", nil},
		{"weir's samples", func(b *box) { b.weir(0); b.s.After.Weir = nil }, LimitUnknown, "could not be checked here", nil},
		{"a card's features", func(b *box) { b.s.Interfaces[1].Features = nil }, LimitFar, "; OFF-1 and OFF-2 could not be checked", []string{"OFF-1", "OFF-2"}},
		{"a kernel that tracks nothing", func(b *box) {
			b.s.After.Conntrack = &Conntrack{}
			delete(b.s.Sysctls, "net.netfilter.nf_conntrack_max")
		}, LimitFar, "Nothing is wrong here: ", nil},
		{"connections without their limit", func(b *box) { delete(b.s.Sysctls, "net.netfilter.nf_conntrack_max") }, LimitFar, "; CT-1 could not be checked", []string{"CT-1"}},
		{"what hurts nobody", func(b *box) { b.s.Interfaces[0].EEE = nil }, LimitFar, "Nothing is wrong here: ", nil},
	} {
		b := newBox(4)
		b.card("eth0", "ixgbe", 10000, 4, 4)
		b.card("eth1", "ixgbe", 10000, 4, 4)
		b.loaded().cores(30, 0, 1, 2, 3)
		c.change(b)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		v := r.Verdict
		if v.Limit != c.limit || !strings.Contains(v.Sentence, c.says) || v.Severity != Notice {
			t.Errorf("%s: %+v", c.name, v)
		}
		slices.Sort(c.unseen)
		if got := slices.Sorted(slices.Values(v.Unseen)); c.unseen != nil && !slices.Equal(got, c.unseen) {
			t.Errorf("%s: unseen %q, want %q", c.name, got, c.unseen)
		}
		if (len(v.Unseen) > 0) != strings.Contains(v.Sentence, "could not be checked") {
			t.Errorf("%s: %q of %q", c.name, v.Unseen, v.Sentence)
		}
	}
}

// change is one change to a healthy machine that causes a finding.
type change struct {
	check    string
	severity Severity
	change   func(b *box)
}

var changes = slices.Concat(stackChanges, []change{
	{"FWD-1", Critical, func(b *box) {
		b.weir(0)
		b.s.Sysctls["net.ipv4.ip_forward"], b.s.Sysctls["net.ipv6.conf.all.forwarding"] = "0", "1"
	}},
	{"FWD-1", Critical, func(b *box) {
		b.weir(0)
		b.addresses("2001:db8:1::1/64", "2001:db8:2::1/64").s.Sysctls["net.ipv6.conf.all.forwarding"] = "0"
	}},
	{"FWD-2", Warning, func(b *box) {
		b.weir(0)
		b.s.Chains = []Chain{{Name: "nftables ip filter FORWARD", Hook: "forward", Policy: "drop"}}
	}},
	{"FWD-3", Warning, func(b *box) {
		b.weir(0)
		b.s.Chains = []Chain{{Name: "nftables ip nat POSTROUTING", Hook: "postrouting", NAT: true}}
	}},
	{"IPSEC-1", Notice, func(b *box) {
		b.weir(0)
		b.s.Policies = &Policies{Bare: 3, Bound: 2}
	}},
	{"IPSEC-1", Notice, func(b *box) {
		b.weir(0)
		b.s.Policies = &Policies{Blocks: true}
	}},
	{"MARK-1", Warning, func(b *box) {
		b.weir(0)
		b.s.MarkRules = []MarkRule{{Family: "inet", Priority: 40000, Mark: 77, Mask: 0xffffffff}}
	}},
	{"MARK-1", Warning, func(b *box) {
		b.weir(0)
		b.s.MarkRules = []MarkRule{{Family: "inet6", Priority: 40001, Mark: 0x20000001, Mask: 0x20000001}}
	}},
	{"RA-1", Warning, func(b *box) {
		b.s.Routes = []Route{{Interface: "eth0.7", Family: "inet6", Origin: "ra"}}
		b.s.Sysctls["net.ipv6.conf.eth0/7.accept_ra"], b.s.Sysctls["net.ipv6.conf.eth0/7.forwarding"] = "1", "1"
	}},
	{"RPF-1", Warning, func(b *box) {
		b.s.Routes = []Route{{Interface: "eth0", Family: "inet"}, {Interface: "eth1", Family: "inet"}}
		b.s.Sysctls["net.ipv4.conf.eth0.rp_filter"], b.s.Sysctls["net.ipv4.conf.eth1.rp_filter"] = "1", "2"
	}},
	{"VER-1", Notice, func(b *box) {
		b.s.Unknown = []UnknownLine{{At: "/etc/sysctl.d/60-router.conf:3", Key: "net.ipv4.tcp_low_latency"}}
	}},
	{"VIRT-1", Warning, func(b *box) {
		c := b.s.After.CPUs[2]
		c.Steal, c.Idle = 60, c.Idle-60
		b.s.After.CPUs[2] = c
	}},
	{"CPU-3", Warning, func(b *box) { b.core(1, 12, 4, 84) }},
	{"IRQ-3", Critical, func(b *box) {
		b.s.CPUs[0].Siblings, b.s.CPUs[1].Siblings = []int{0, 1}, []int{0, 1}
		b.s.CPUs[2].Siblings, b.s.CPUs[3].Siblings = []int{2, 3}, []int{2, 3}
		b.serve("eth0", 2, 0).serve("eth0", 3, 1).serve("eth1", 2, 0).serve("eth1", 3, 1).loaded().cores(95, 0, 1)
	}},
	{"SQZ-1", Critical, func(b *box) { b.s.After.Softnet[1] = Softnet{Processed: 90000, Dropped: 900, Squeezed: 50} }},
	{"FC-1", Warning, func(b *box) { b.s.After.Statistics["eth0"]["rx_flow_control_xoff"] = 5000 }},
	{"ERR-1", Critical, func(b *box) {
		b.s.Before.Statistics["eth0"]["rx_crc_errors"], b.s.After.Statistics["eth0"]["rx_crc_errors"] = 0, 4000
	}},
	{"QDISC-1", Warning, func(b *box) {
		b.s.Before.Qdiscs = []Qdisc{{Interface: "eth0", Kind: "mq", Handle: "0:0", Parent: "root"}}
		b.s.After.Qdiscs = []Qdisc{{Interface: "eth0", Kind: "mq", Handle: "0:0", Parent: "root", Packets: 50000, Drops: 400}}
	}},
	{"LOCK-1", Warning, func(b *box) {
		b.s.Before.Qdiscs = []Qdisc{{Interface: "eth0", Kind: "htb", Handle: "1:0", Parent: "root"}}
		b.s.After.Qdiscs = []Qdisc{{Interface: "eth0", Kind: "htb", Handle: "1:0", Parent: "root", Packets: 50000, Drops: 400}}
	}},
	{"RSS-4", Notice, func(b *box) {
		no := false
		b.s.Interfaces[0].RSS.Symmetric = &no
	}},
	{"PATH-1", Warning, func(b *box) {
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "tun0", Kind: "tun", Up: true, MTU: 1400})
		b.s.After.SNMP["Ip.FragFails"], b.s.After.SNMP["Ip.InReceives"] = 900, 90000
	}},
	{"XDP-2", Critical, func(b *box) {
		b.s.Interfaces[0].XDP = "native"
		b.s.Before.Statistics["eth0"]["rx_xdp_redirect_errors"], b.s.After.Statistics["eth0"]["rx_xdp_redirect_errors"] = 5, 20000
	}},
	{"STATE-1", Warning, func(b *box) { b.weir(85000) }},
	{"PPP-2", Critical, func(b *box) {
		b.weir(10)
		b.s.Weir.Sessions = []WeirSession{{Name: "ppp0", On: "eth1", State: "waiting", Seconds: 20, Step: "authentication", Why: "the peer refuses name or password"}}
	}},
	{"NAT-1", Critical, func(b *box) { b.weir(10); b.s.After.Weir.Reasons["nat-ports"] = 3 }},
	{"NAT-2", Warning, func(b *box) { b.nat(12500) }},
	{"NAT-2", Critical, func(b *box) { b.nat(14500) }},
	{"CT-1", Warning, func(b *box) { b.s.After.Conntrack.Count = 230000 }},
	{"NEIGH-1", Critical, func(b *box) { b.s.After.Neighbours.Full4 = 4 }},
	{"LINK-1", Warning, func(b *box) { b.s.Interfaces[0].Mbit = 100 }},
	{"LAG-1", Critical, func(b *box) {
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "bond0", Kind: "bond", Up: true, Bond: &Bond{Mode: "802.3ad", Hash: "layer2", Members: []string{"eth0", "eth1"}}})
		l := b.s.After.Links["eth0"]
		l.TxPackets, l.TxBytes = 8200000, 12300e6
		b.s.After.Links["eth0"] = l
	}},
	{"PCI-1", Warning, func(b *box) { b.s.Interfaces[1].PCI.Width = 1 }},
	{"XDP-1", Warning, func(b *box) { b.s.Interfaces[1].XDP = "generic" }},
	{"PWR-1", Warning, func(b *box) { b.cores(82, 0, 1, 2, 3); b.s.CPUs[2].MHz, b.s.CPUs[2].Governor = 1200, "schedutil" }},
	{"THR-1", Warning, func(b *box) { b.s.After.Throttle[3] = 9 }},
	{"COST-1", Warning, func(b *box) { b.s.Wished = 2 }},
})

// weir makes weir run on the box with states of 100,000 states in use.
func (b *box) weir(states int) {
	b.s.Weir = &Weir{StateLimit: 100000, MarkMask: 0xe0000000, Interfaces: []WeirInterface{}}
	b.s.Before.Weir = &WeirCount{States: states, Reasons: map[string]uint64{}}
	b.s.After.Weir = &WeirCount{States: states, Reasons: map[string]uint64{}}
}

// nat sets how many of 15,535 ports are in use towards one far end.
func (b *box) nat(ports int) *box {
	b.weir(ports)
	b.s.Weir.NATPorts = []PortRange{{50001, 65535}, {1024, 65535}}
	use := NATUse{Protocol: "tcp", Address: netip.MustParseAddr("203.0.113.5"), Far: netip.MustParseAddrPort("198.51.100.9:443"), Ports: ports, Low: 50003, High: 65535}
	wide := use
	wide.Far, wide.Ports, wide.Low = netip.MustParseAddrPort("198.51.100.9:80"), 16000, 1030 // of 64,512 ports
	b.s.After.Weir.NAT = []NATUse{wide, use}
	return b
}

func (b *box) loaded() *box {
	return b.traffic("eth0", 800, 20000, 20000, 20000, 20000).traffic("eth1", 800, 20000, 20000, 20000, 20000)
}

// TestChanges changes one fact of a healthy machine at a time. One check finds the
// change; without the change it finds nothing.
func TestChanges(t *testing.T) {
	healthy := func() *box {
		b := newBox(4)
		b.card("eth0", "ixgbe", 10000, 4, 4)
		b.card("eth1", "ixgbe", 10000, 4, 4)
		return b
	}
	worst := func(b *box, id string) (f Finding, found bool) {
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Findings {
			if f.Check == id {
				return f, true
			}
		}
		return f, false
	}
	for _, c := range changes {
		if f, found := worst(healthy().loaded().cores(30, 0, 1, 2, 3), c.check); found && f.Severity > Notice {
			t.Errorf("%s on a healthy machine: %s", c.check, f.Says)
		}
		b := healthy()
		if c.check != "IRQ-3" {
			b.loaded().cores(30, 0, 1, 2, 3)
		}
		c.change(b)
		f, found := worst(b, c.check)
		if found && f.Severity > checkOf(c.check).Worst {
			t.Errorf("%s: %s is worse than %s", c.check, f.Severity, checkOf(c.check).Worst)
		}
		if !found || f.Severity != c.severity {
			t.Errorf("%s: found %v, %s: %s; want %s", c.check, found, f.Severity, f.Says, c.severity)
		}
		if len(f.Evidence) == 0 || len(f.Remedies) == 0 {
			t.Errorf("%s lacks evidence or remedy", c.check)
		}
	}
}

func TestQueueNames(t *testing.T) {
	for name, want := range map[string]int{
		"rx_queue_3_packets": 3, "rx-12.packets": 12, "rx-0.rx_packets": 0, "rx7_packets": 7, "[2]: rx_ucast_packets": 2, "queue_5_rx_cnt": 5,
		"rxq1: rx_pkts": 1, "rvec_4_rx_pkts": 4, "6: rcv_pkts": 6, "rx_packets[9]": 9, "Queue[3] InPackets": 3, "q0_rx_pkt_n": 0,
		"rx_queue_3_bytes": -1, "tx_queue_3_packets": -1, "rx_packets": -1, "rx_queue_0_drops": -1, "rx_64_bytes_packets": -1,
	} {
		n, ok := rxQueue(name)
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("%q: queue %d, want %d", name, n, want)
		}
	}
}

func TestInterruptNames(t *testing.T) {
	for _, c := range []struct {
		device, irq, owner string
		queue              int // queue that the core serves; -1: none
	}{
		{"eth1", "eth1-TxRx-3", "", 3}, {"eth1", "eth10-TxRx-3", "", -1}, {"eth1", "i40e-eth1-TxRx-3", "", 3}, {"eth0", "virtio1-input.2", "eth0", 2},
		{"eth0", "mlx5_comp3@pci:0000:01:00.0", "eth0", 3}, {"ens5", "ens5-Tx-Rx-1", "", 1}, {"eth0", "eth0-tx-0", "", -1}, {"eth0", "eth0-rx-0", "", 0},
		{"eth0", "virtio1-output.0", "eth0", -1}, {"eth0", "eth0", "", 0}, {"eth0", "eth0-2", "", 2}, {"eth0", "eth0-q3-rx", "", 3}, {"eth0", "eth0-q3-tx", "", -1}, {"eth0", "eth0:rx-1", "", 1}, {"eth0", "mlx5_async0@pci:0000:01:00.0", "eth0", -1},
	} {
		v := newView(&Snapshot{IRQs: []IRQ{{Number: 1, Name: c.irq, Interface: c.owner}}})
		for q := range 4 {
			found := v.irqOf(&Interface{Name: c.device}, q) != nil
			if found != (q == c.queue) {
				t.Errorf("%s of %s serves queue %d: %v", c.irq, c.device, q, found)
			}
		}
	}
}

// TestListedQueues checks that queues not in use are not counted, whether or not their
// number is known.
func TestListedQueues(t *testing.T) {
	for _, known := range []bool{true, false} {
		b := newBox(4)
		n := b.card("eth0", "ixgbe", 10000, 4, 63)
		b.listed("eth0", 4, 63).traffic("eth0", 400, 90000, 0, 91000, 89000)
		b.s.Before.Statistics["eth0"]["rx_queue_1_packets"] = b.s.After.Statistics["eth0"]["rx_queue_1_packets"]
		if !known {
			n.Channels, n.RxQueues = nil, 0
		}
		if queues := newView(b.s).nics[0].queues; len(queues) != 4 {
			t.Errorf("number known %v: %d queues: %+v", known, len(queues), queues)
		}
	}
}

// TestNATUses checks that the fullest translations to many far ends are named, and that
// connections of former rules are not judged and are reported as such.
func TestNATUses(t *testing.T) {
	b := newBox(2).nat(13000)
	for port := range uint16(7) {
		u := b.s.After.Weir.NAT[1]
		u.Far, u.Ports = netip.AddrPortFrom(u.Far.Addr(), 1000+port), 12600+int(port)
		b.s.After.Weir.NAT = append(b.s.After.Weir.NAT, u)
	}
	old := b.s.After.Weir.NAT[1]
	old.Low = 200
	b.s.After.Weir.NAT = append(b.s.After.Weir.NAT, old)
	o := natUses(newView(b.s))
	if len(o.findings) != 1 || len(o.missing) != 1 {
		t.Fatalf("%+v", o)
	}
	f := o.findings[0]
	const first, last = "tcp from 203.0.113.5 to 198.51.100.9:443: 13,000 of 15,535 (84 %) of the ports 50001 to 65535", "and towards 3 more"
	if len(f.Evidence) != 6 || f.Evidence[0] != first || f.Evidence[5] != last {
		t.Errorf("%q", f.Evidence)
	}
}

// TestWatched checks that the kernel's own counts are printed beside the sampled ticks,
// with their cost at the end. If the kernel refused the programs, the reason is printed
// instead.
func TestWatched(t *testing.T) {
	b := newBox(2)
	b.card("eth0", "igb", 1000, 1, 1).RPS = []string{""}
	b.traffic("eth0", 400, 80000).cores(96, 0)
	b.s.Watched = &Watched{Seconds: 2, Runs: 41000, OwnSeconds: 0.003, Cores: map[int]CoreWatch{
		0: {Softirqs: map[string]float64{"NET_RX": 1.9, "TIMER": 0.01, "RCU": 0.002, "SCHED": 0.0001}, Received: map[string]Polled{"eth0": {300, 160000}, "backlog": {2, 10}, "lo": {1, 0}}},
	}}
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "cpu0, counted in the kernel: NET_RX 95 %, TIMER 0.50 %, RCU 0.10 %; it received eth0 80k packets/s, backlog 5 packets/s"
	if f := findingOf(r, "CPU-1"); f == nil || !slices.Contains(f.Evidence, want) {
		t.Errorf("%+v", f)
	}
	const cost = "counting in the kernel took 0.15 % of one core over 2.0 s, in 41k runs of its programs"
	if !slices.Contains(r.Notes, cost) {
		t.Errorf("%q", r.Notes)
	}
	b.s.Watched, b.s.Unreadable = nil, map[string]string{"watched": "operation not permitted"}
	if r, err = Examine(b.s, nil); err != nil || !slices.Contains(r.Notes, "nothing was counted in the kernel (operation not permitted): everything is from /proc, /sys and netlink") {
		t.Errorf("%q, %v", r.Notes, err)
	}
}

// TestManyQueuesOnOneCore checks many queues on one core. Each has a small part of the
// core's packets; together they are its load.
func TestManyQueuesOnOneCore(t *testing.T) {
	b := newBox(4)
	b.card("eth0", "igb", 1000, 4, 4)
	b.card("eth1", "igb", 1000, 4, 4)
	for q := range 4 {
		b.serve("eth0", q, 0).serve("eth1", q, 0)
	}
	b.loaded().core(0, 97, 1, 1).cores(5, 1, 2, 3)
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	const says = "cpu0 is full of softirq: it serves 8 queues of eth0 and eth1; 3 cores idle"
	if !strings.HasPrefix(r.Verdict.Sentence, says) {
		t.Errorf("%q, want %q", r.Verdict.Sentence, says)
	}
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == "IRQ-1" })
	if i < 0 || len(r.Findings[i].Remedies) < 6 || !strings.Contains(r.Findings[i].Remedies[0].Command, "echo 1 > /proc/irq/") {
		t.Errorf("%+v", r.Findings)
	}
}

// TestStolenTime checks that time taken by the hypervisor counts neither as packets nor
// as programs.
func TestStolenTime(t *testing.T) {
	b := newBox(4)
	b.card("eth0", "ixgbe", 10000, 4, 4)
	b.card("eth1", "ixgbe", 10000, 4, 4)
	b.loaded().cores(1, 0, 1, 2, 3)
	for id := range 4 {
		c := b.s.After.CPUs[id]
		c.Steal, c.Idle = c.Idle-b.s.Before.CPUs[id].Idle, b.s.Before.CPUs[id].Idle
		b.s.After.CPUs[id] = c
	}
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(r.Verdict.Sentence, "the hypervisor takes ") {
		t.Errorf("%q", r.Verdict.Sentence)
	}
	for _, f := range r.Findings {
		if f.Check == "CPU-2" || f.Check == "CPU-3" {
			t.Errorf("%s: %s", f.Check, f.Says)
		}
	}
}

// TestDamaged checks that damaged frames are found in whatever counter a driver has.
// Frames refused for their length do not point to a bad cable.
func TestDamaged(t *testing.T) {
	for _, c := range []struct {
		counter, says string
		severity      Severity
	}{
		{"rx_crc_errors", "are damaged", Critical}, {"rx_crc_errors_phy", "are damaged", Critical}, {"port.rx_crc_errors", "are damaged", Critical},
		{"rx_crc_errors.nic", "are damaged", Critical}, {"rx_fcs_err_frames", "are damaged", Critical}, {"align_errors", "are damaged", Critical},
		{"rx_symbol_err_phy", "are damaged", Critical}, {"rx_fcs_errors", "are damaged", Critical}, {"rx_jabber.nic", "are damaged", Critical},
		{"rx_long_length_errors", "because of their length: a neighbour has another MTU than its own of 1500 bytes", Warning}, {"port.rx_oversize", "because of their length", Warning},
		{"rx_csum_offload_errors", "", Notice}, {"tx_errors_xdp", "", Notice}, {"rx_buf_errors", "", Notice}, {"rx_queue_0_csum_err", "", Notice},
	} {
		b := newBox(4)
		b.card("eth0", "ixgbe", 10000, 4, 4)
		b.traffic("eth0", 800, 20000, 20000, 20000, 20000).cores(30, 0, 1, 2, 3).counted("eth0", c.counter, 900)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "ERR-1")
		if f == nil && c.says == "" {
			continue
		}
		if f == nil || c.says == "" || f.Severity != c.severity || !strings.Contains(f.Says, c.says) || !strings.Contains(strings.Join(f.Evidence, " "), c.counter) {
			t.Errorf("%s: %+v", c.counter, f)
		}
	}
}

// TestInterruptsByPlace checks that interrupts of mlx5 are found: they name the card by
// its bus address.
func TestInterruptsByPlace(t *testing.T) {
	v := newView(&Snapshot{IRQs: []IRQ{{Number: 7, Name: "mlx5_comp3@pci:0000:3b:00.0"}, {Number: 8, Name: "mlx5_comp3@pci:0000:3b:00.1"}, {Number: 9, Name: "mlx5_async0@pci:0000:3b:00.1"}}})
	for address, want := range map[string]int{"0000:3b:00.0": 7, "0000:3b:00.1": 8, "0000:3b:00.2": 0} {
		irq, got := v.irqOf(&Interface{Name: "eth0", PCI: &PCI{Address: address}}, 3), 0
		if irq != nil {
			got = irq.Number
		}
		if got != want {
			t.Errorf("%s: interrupt %d, want %d", address, got, want)
		}
	}
}

// TestHosted checks that the verdict leaves out what a hypervisor's card does not report.
func TestHosted(t *testing.T) {
	for driver, want := range map[string]State{"virtio_net": NotHere, "ena": NotHere, "igb": Unreadable} {
		b := newBox(2)
		n := b.card("eth0", driver, 0, 2, 2)
		n.PCI, n.EEE = nil, nil
		for _, c := range []*Counters{b.s.Before, b.s.After} {
			delete(c.Statistics["eth0"], "rx_flow_control_xoff")
			delete(c.Statistics["eth0"], "tx_flow_control_xoff")
		}
		r, err := Examine(b.traffic("eth0", 400, 9000, 9000).s, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Checks {
			if slices.Contains([]string{"LINK-1", "PCI-1", "EEE-1", "FC-1"}, c.ID) && c.State != want {
				t.Errorf("%s: %s is %s, want %s", driver, c.ID, c.State, want)
			}
		}
	}
}

// TestImpossibleLink checks a link that carried more than its stated speed. The speed is
// wrong, so the link is not full, and a full core is the limit.
func TestImpossibleLink(t *testing.T) {
	for mbit, want := range map[int]Limit{2500: LimitBox, 3300: LimitLink} {
		b := machines[1].build()
		b.s.Interfaces[1].Mbit, b.s.Interfaces[1].MaxMbit = mbit, mbit
		b.traffic("eth1", 980, 40000, 38000, 38000, 284000)
		l := b.s.After.Links["eth1"]
		l.RxPackets, l.RxBytes = 4000000, 4000000*980
		b.s.After.Links["eth1"] = l
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, "eth1 counted ") })
		if r.Verdict.Limit != want || r.Verdict.Check != "RSS-1" || said != (want == LimitBox) {
			t.Errorf("%d Mbit/s: %+v, notes %q", mbit, r.Verdict, r.Notes)
		}
	}
}

// TestTwoSharedCores checks that, of several full cores, the one that serves two cards is
// named.
func TestTwoSharedCores(t *testing.T) {
	b := newBox(4)
	b.card("eth0", "igb", 1000, 2, 2)
	b.card("eth1", "igb", 1000, 2, 2)
	b.traffic("eth0", 400, 50000, 51000).traffic("eth1", 400, 50000, 49000).cores(97, 0, 1)
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "cpu0 and cpu1 are full of softirq: cpu0 serves queue 0 of eth0 and queue 0 of eth1; 2 cores idle"
	if r.Verdict.Check != "IRQ-1" || r.Verdict.Sentence != want {
		t.Errorf("%+v", r.Verdict)
	}
}

// TestMovedThread checks that a queue received by a thread moves with the thread. The
// core of its interrupt does no work.
func TestMovedThread(t *testing.T) {
	b := newBox(4).core(0, 3, 95, 0)
	n := b.card("eth0", "ixgbe", 10000, 2, 2)
	n.NAPI = []NAPI{{Queue: 0, IRQ: 40, Thread: &Thread{CPUs: "0"}}, {Queue: 1, IRQ: 41, Thread: &Thread{CPUs: "0"}}}
	b.traffic("eth0", 500, 200000, 200000)
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == "IRQ-1" })
	if i < 0 || r.Findings[i].Remedies[0].Command != "weir affinity set eth0:1=1" {
		t.Errorf("%+v", r.Findings)
	}
}

// TestUnknownSpeed checks that a speed the driver does not report is unknown, also if the
// bundle has it as the kernel writes it.
func TestUnknownSpeed(t *testing.T) {
	b := newBox(2)
	b.card("eth0", "virtio_net", -1, 2, 2).MaxMbit = 10000
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == "LINK-1" }) {
		t.Errorf("%+v", r.Findings)
	}
}
