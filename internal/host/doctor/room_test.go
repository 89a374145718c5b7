package doctor

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestNoRoom checks which drivers' counters say that a packet found no room in the card.
func TestNoRoom(t *testing.T) {
	for counter, driver := range map[string]string{
		"rx_missed_errors": "igb", "rx_no_buffer_count": "e1000", "rx_no_dma_resources": "ixgbe", "port.rx_dropped": "i40e", "rx_dropped.nic": "ice",
		"rx_out_of_buffer": "mlx5", "rx_discards_phy": "mlx5", "[3]: rx_discards": "bnxt", "rx_discards": "tg3", "mbuf_lwm_thresh_hit": "tg3",
		"rx_fw_discards": "bnx2", "rx_ftq_discards": "bnx2", "rx_brb_discard": "bnx2x", "port_rx_nodesc_drops": "sfc", "rx_nodesc_drop_cnt": "sfc",
		"rx_drops": "ena", "rx_queue_drop_cnt[0]": "gve", "rx_queue_0_drops": "virtio_net", "rx0_drops": "virtio_net", "  pkts rx OOB": "vmxnet3", "pkts rx OOB": "vmxnet3",
		"InDroppedDma": "atlantic", "no_buff_discards": "qede", "rx_overflow_cntr": "stmmac", "mmc_rx_fifo_overflow": "stmmac", "rx_missed_cntr": "stmmac",
		"rx_discard": "mvneta", "rx_overrun_err": "mvneta", "rx_fullq_dropped": "mvpp2", "rx_bm_dropped": "mvpp2", "rx_resource_errors": "macb", "rx_overruns": "macb",
		"rx_overflow": "mtk_eth_soc", "[hw] rx nobuffer discards": "dpaa2-eth", "Rx ring  2 discarded frames": "enetc", "rx_drops_no_pbuf": "be2net", "rxq3: rx_drops_no_frags": "be2net", "RX Dropped Frames": "lan78xx",
		"rx_missed": "r8169", "rx_fifo_errors": "others",
	} {
		if !lacksRoom(counter) {
			t.Errorf("%q of %s does not count", counter, driver)
		}
	}
	for _, counter := range []string{"rx_xdp_drops", "rx_queue_0_xdp_drops", "rx0_xdp_drops", "rx_dropped", "rx_filtered", "tx_discards", "rx_vlan_discards", "rx_crc_errors", "tx_overruns", "rx_steer_missed_packets", "drv dropped rx total", "RX FCS Errors", "rx_packets", "InDroppedFilter"} {
		if lacksRoom(counter) {
			t.Errorf("%q counts as without room", counter)
		}
	}
}

// TestBacklogTogether checks that cores whose backlogs overflow are named together, with one
// remedy, and full ones apart.
func TestBacklogTogether(t *testing.T) {
	b := forwarding(4, 50)
	for _, id := range []int{0, 1, 2} {
		b.s.After.Softnet[id] = Softnet{Processed: 400000, Dropped: 9000}
	}
	b.core(2, 97, 1, 1)
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	var subjects []string
	for _, f := range r.Findings {
		if f.Check == "SQZ-1" {
			subjects = append(subjects, f.Subject)
		}
	}
	slices.Sort(subjects)
	if !slices.Equal(subjects, []string{"cpu0 and cpu1", "cpu2"}) {
		t.Errorf("%q", subjects)
	}
}

// TestSentPauses checks that a card whose ring is shorter than bursts gets a longer one, and
// one whose core is full does not.
func TestSentPauses(t *testing.T) {
	for busy, grows := range map[float64]bool{40: true, 97: false} {
		b := forwarding(4, busy).counted("eth0", "tx_flow_control_xoff", 5000)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "FC-1")
		if f == nil || slices.ContainsFunc(f.Remedies, func(m Remedy) bool { return m.Command == "ethtool -G eth0 rx 4096" }) != grows {
			t.Errorf("%.0f %% busy: %+v", busy, f)
		}
	}
}

// TestDockersPolicy checks that Docker's policy is reported where it meets others' bridges,
// and not where packets are forwarded all the same, or where no other bridge is.
func TestDockersPolicy(t *testing.T) {
	for _, c := range []struct {
		name, bridge string
		forwarded    uint64
		service      string
		grade        Severity
		found        bool
	}{
		{"LXD's bridge", "lxdbr0", 0, "dockerd", Warning, true},
		{"it forwards", "lxdbr0", 90000, "dockerd", Notice, true},
		{"Docker alone", "br-5f0a1b2c3d4e", 0, "dockerd", 0, false},
		{"a filter of its own", "lxdbr0", 0, "firewalld", 0, false},
	} {
		b := newBox(4)
		b.card("eth0", "igb", 1000, 4, 4)
		for _, name := range []string{"docker0", c.bridge} {
			b.s.Interfaces = append(b.s.Interfaces, Interface{Name: name, Kind: "bridge", Up: true})
		}
		b.s.Services = []string{c.service}
		b.s.Chains = []Chain{{Name: "iptables filter FORWARD", Hook: "forward", Policy: "drop"}}
		b.s.Before.SNMP["Ip.ForwDatagrams"], b.s.After.SNMP["Ip.ForwDatagrams"] = 7, 7+c.forwarded
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "FWD-2")
		if (f != nil) != c.found || f != nil && (f.Severity != c.grade || !strings.Contains(f.Says, "lxdbr0") || strings.Contains(f.Says, "docker0")) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// TestBridgesThatNothingFilters checks that Docker's policy is not reported where it meets
// nobody: a bridge over the only card carries the box's own address, and rules may accept what
// comes from a bridge.
func TestBridgesThatNothingFilters(t *testing.T) {
	machine := Interface{Name: "vnet0", Kind: "tun", Up: true, Master: "br0"}
	lan := Interface{Name: "eth1", Kind: "physical", Up: true, Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")}}
	for _, c := range []struct {
		name    string
		more    []Interface
		handed  string // net.bridge.bridge-nf-call-iptables
		accepts []string
		found   bool
	}{
		{"the only card", nil, "1", nil, false},
		{"with a machine, bridged by itself", []Interface{machine}, "0", nil, false},
		{"with a machine, and br_netfilter", []Interface{machine}, "1", nil, true},
		{"with another network", []Interface{lan}, "0", nil, true},
		{"with another network, and a rule", []Interface{lan}, "0", []string{"br*"}, false},
		{"with another network, and a rule for another bridge", []Interface{lan}, "0", []string{"virbr0"}, true},
	} {
		b := newBox(4)
		b.card("eth0", "igb", 1000, 4, 4).Master = "br0"
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "docker0", Kind: "bridge", Up: true, Addresses: lan.Addresses},
			Interface{Name: "br0", Kind: "bridge", Up: true, Addresses: lan.Addresses})
		b.s.Interfaces = append(b.s.Interfaces, c.more...)
		b.s.Services, b.s.Sysctls["net.bridge.bridge-nf-call-iptables"] = []string{"dockerd"}, c.handed
		b.s.Chains = []Chain{{Name: "nftables ip filter FORWARD", Hook: "forward", Policy: "drop", Accepts: c.accepts}}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "FWD-2")
		if (f != nil) != c.found {
			t.Errorf("%s: %+v", c.name, f)
		}
		alone := func(m Remedy) bool { return m.Command == "sysctl -w net.bridge.bridge-nf-call-iptables=0" }
		if f != nil && slices.ContainsFunc(f.Remedies, alone) != (c.handed == "1") {
			t.Errorf("%s: %+v", c.name, f.Remedies)
		}
	}
}

// TestAcceptedChain checks that a chain of policy drop whose rules accept all that weir filters is
// no finding.
func TestAcceptedChain(t *testing.T) {
	for accepts, found := range map[string]bool{"eth0": true, "eth0 eth1": false, "eth*": false, "": true} {
		b := newBox(4)
		b.card("eth0", "igb", 1000, 4, 4)
		b.card("eth1", "igb", 1000, 4, 4)
		b.chain().weir(0)
		b.s.Weir.Interfaces = []WeirInterface{{Name: "eth0", Hook: "xdp"}, {Name: "eth1", Hook: "tcx"}, {Name: "eth2", Hook: "none"}}
		b.s.Chains[0].Accepts = strings.Fields(accepts)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f := findingOf(r, "FWD-2"); (f != nil) != found {
			t.Errorf("%q: %+v", accepts, f)
		}
	}
}

// TestProgramsQueue checks that drops in front of a tunnel's program are named, and that they
// stand under the program if it fills its core.
func TestProgramsQueue(t *testing.T) {
	for _, c := range []struct {
		user    float64
		drops   uint64
		verdict string
		because string
	}{
		{20, 9000, "QDISC-1", ""}, {60, 9000, "TUN-1", "TUN-1"}, {20, 5, "", ""},
	} {
		b := newBox(4)
		b.card("eth0", "igb", 1000, 4, 4)
		b.traffic("eth0", 1400, 9000, 200, 300, 7000).cores(12, 0, 1, 2).core(3, 4, 0.6*c.user, c.user).tunnel(Tunnel{Kind: "tun", Interface: "tun0"}, 150000)
		l := b.s.After.Links["tun0"]
		l.TxPackets, l.TxDropped = l.TxPackets+150000, c.drops
		b.s.After.Links["tun0"] = l
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "QDISC-1")
		if r.Verdict.Check != c.verdict || (f != nil) != (c.drops >= fewLost) || f != nil && f.Because != c.because {
			t.Errorf("%+v: verdict %s: %s; %+v", c, r.Verdict.Check, r.Verdict.Sentence, f)
		}
	}
}

// TestMovesMayReturn checks that doctor says once what may undo its moves, and only where it
// runs or nobody knows.
func TestMovesMayReturn(t *testing.T) {
	i := slices.IndexFunc(machines, func(m machine) bool { return m.name == "xen-one-core" })
	for _, c := range []struct {
		services []string
		says     string
	}{
		{[]string{}, ""}, {nil, "irqbalance, if it runs, may take them back"}, {[]string{"irqbalance"}, "irqbalance runs here, and may take them back"},
	} {
		b := machines[i].build()
		b.s.Services = c.services
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, m := range findingOf(r, "IRQ-1").Remedies {
			text += m.Text + "\n"
		}
		if n := strings.Count(text, "irqbalance"); n > 1 || (n == 1) != (c.says != "") || !strings.Contains(text, c.says) {
			t.Errorf("%q: %s", c.services, text)
		}
	}
}
