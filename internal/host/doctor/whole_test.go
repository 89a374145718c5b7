package doctor

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestWholeFindings checks that every finding has a sentence, evidence, a command that
// can be typed as printed, and what to expect of it.
func TestWholeFindings(t *testing.T) {
	missing := map[string]bool{}
	for _, c := range Checks() {
		missing[c.ID] = true
	}
	for name, s := range faulty(t) {
		r, err := Examine(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Findings {
			delete(missing, f.Check)
			for _, fault := range faults(&f) {
				t.Errorf("%s: %s %s (%s)", name, f.Check, fault, f.Says)
			}
		}
	}
	for id := range missing {
		t.Errorf("no machine has %s", id)
	}
}

// unfinished matches what a command must not have: a placeholder that somebody has to
// fill in.
var unfinished = regexp.MustCompile(`…|<[a-z]|%[sd!]| (?:CPU|IFACE|DEV|N)\b|  |\$\{`)

func faults(f *Finding) (all []string) {
	switch commands := typed(f); {
	case f.Says == "" || strings.HasSuffix(f.Says, "."):
		all = append(all, "says no sentence without its full stop")
	case len(f.Evidence) == 0 || strings.Contains(strings.Join(f.Evidence, ""), "%!"):
		all = append(all, "lacks evidence")
	case len(commands)+len(f.See) == 0 && f.Because == "": // its cause, or one above, has one
		all = append(all, "has no command")
	case unfinished.MatchString(strings.Join(commands, "\n")):
		all = append(all, fmt.Sprintf("has commands with a gap: %q", commands))
	case f.Expect == "" && f.Because == "":
		all = append(all, "does not say what to expect")
	}
	for _, r := range f.Remedies {
		if r.Text == "" {
			all = append(all, fmt.Sprintf("does not say what %q does", r.Command))
		}
	}
	return all
}

func typed(f *Finding) (commands []string) {
	for _, r := range f.Remedies {
		if r.Command != "" {
			commands = append(commands, r.Command)
		}
	}
	return commands
}

// faulty returns machines on which every check finds something at least once.
func faulty(t *testing.T) map[string]*Snapshot {
	t.Helper()
	all := map[string]*Snapshot{}
	for _, m := range machines {
		all[m.name] = m.build().s
	}
	unloaded := func() *box {
		b := newBox(4)
		b.card("eth0", "ixgbe", 10000, 4, 4)
		b.card("eth1", "ixgbe", 10000, 4, 4)
		return b
	}
	ordinary := func() *box { return unloaded().loaded().cores(30, 0, 1, 2, 3) }
	for i, c := range changes {
		b := ordinary()
		if c.check == "IRQ-3" { // this machine sets the load itself
			b = unloaded()
		}
		c.change(b)
		all[fmt.Sprintf("change %d: %s", i, c.check)] = b.s
	}
	for _, h := range harmless {
		b := ordinary()
		h.fault(b)
		all["harmless: "+h.name] = b.s
	}
	for name, change := range further {
		b := ordinary()
		change(b)
		all[name] = b.s
	}
	for name, text := range map[string]string{
		"split": splitText, "pf": fmt.Sprintf(pfText, 99000, 7) + "states        hard limit   100000\n",
		"pf, limits not read": strings.Replace(fmt.Sprintf(pfText, 42, 7), "  match ", "  congestion                             3            0.0/s\n  state-limit                            3            0.0/s\n  match ", 1),
		"freebsd": "kern.osrelease: 12.3-STABLE\nnet.inet.ip.forwarding: 1\nnet.inet.ip.redirect: 1\nnet.inet6.ip6.forwarding: 0\nnet.inet6.ip6.redirect: 1\n" +
			"net.inet.ip.intr_queue_drops: 812\nnet.inet.ip.intr_queue_maxlen: 256\ndev.ix.0.queue0.rx_packets: 9000000\ndev.ix.0.queue1.rx_packets: 100000\nhw.pci.enable_msix: 0\n",
		"freebsd with a full core":      topOf([][3]float64{{0, 2, 96}, {1, 1, 1}}, "96.00 intr{irq264: igb0:rxq0}"),
		"freebsd full everywhere":       topOf([][3]float64{{0, 2, 96}, {0, 2, 96}}),
		"freebsd without buffers":       fmt.Sprintf(netstatText, 26584, 90000),
		"freebsd with bursts":           fmt.Sprintf(bsdBox, "direct", 40000, 5000, 300000, 310000, 12),
		"freebsd with PPPoE":            fmt.Sprintf(bsdBox, "direct", 2000000, 0, 900000, 900, 12),
		"freebsd with a deaf card":      fmt.Sprintf(bsdBox, "direct", 30000000, 0, 2, 1, 0),
		"freebsd that does not forward": "net.inet.ip.forwarding: 0\nnet.inet.ip.redirect: 1\n",
	} {
		s, err := Read(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = s
	}
	return all
}

// further are findings that no other table has.
var further = map[string]func(b *box){
	"EEE":        func(b *box) { b.s.Interfaces[0].EEE = &EEE{Enabled: true, Active: true} },
	"deep sleep": func(b *box) { b.s.Host.IdleStates = []IdleState{{Name: "C6", ExitUsec: 133}} },
	"services":   func(b *box) { b.s.Services = []string{"irqbalance", "tuned", "NetworkManager", "systemd-networkd"} },
	"logged": func(b *box) {
		b.set("kernel.printk", "7").s.Log = []Message{{Text: "IPv4: martian source 192.0.2.7 from 127.0.0.2, on dev eth0", Count: 9000, LastHour: 9000}}
	},
	"stale clocks":  func(b *box) { b.stack("TcpExt.PAWSPassive", 900) },
	"slow readers":  func(b *box) { b.stack("Tcp.InSegs", 90000).stack("TcpExt.TCPRcvCollapsed", 90000) },
	"a translator":  func(b *box) { b.stack("Icmp6.OutPktTooBigs", 900) },
	"IPsec's cache": func(b *box) { b.set("net.ipv4.xfrm4_gc_thresh", "1024").stack("Xfrm.OutBundleGenError", 90000) },
	"no GRO":        func(b *box) { b.s.Interfaces[0].Features["rx-gro"] = false },
	"UDP hash":      func(b *box) { b.s.Interfaces[0].RSS.Hash["udp4"] = "sd" },
	"i211":          func(b *box) { b.s.Interfaces[0].PCI.ID, b.s.Interfaces[0].Channels.MaxCombined = "8086:1539", 2 },
	"mitigations": func(b *box) {
		b.s.Host.Mitigations = map[string]string{"spectre_v2": "Mitigation: Retpolines"}
		b.core(0, 96, 2, 0)
	},
	"one queue":     func(b *box) { b.single("") },
	"conntrack too": func(b *box) { b.weir(50000); b.s.After.Conntrack.Count = 50000 },
	"half duplex":   func(b *box) { b.s.Interfaces[0].Duplex = "half" },
	"docker": func(b *box) {
		b.weir(0)
		b.s.Weir.Interfaces = []WeirInterface{{Name: "eth0", Hook: "xdp"}, {Name: "eth1", Hook: "tcx", Why: "MTU"}}
		b.s.Chains = []Chain{{Name: "nftables ip filter FORWARD", Hook: "forward", Policy: "drop"}, {Name: "ip6tables filter FORWARD", Hook: "forward", Policy: "drop"}, {Name: "nftables inet fw forward", Hook: "forward", Policy: "drop"}}
	},
	"too big for a session, with weir": func(b *box) {
		b.weir(0)
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "ppp0", Kind: "ppp", Parent: "eth0", Up: true, MTU: 1492}, Interface{Name: "wg0", Kind: "wireguard", Up: true, MTU: 1420})
		b.s.After.Weir.Reasons["up-mtu"] = 900
	},
	"too big for nobody knows what": func(b *box) { b.s.After.SNMP["Ip.FragFails"], b.s.After.SNMP["Ip.InReceives"] = 900, 90000 },
	"a full link drops":             func(b *box) { b.s.Interfaces[0].Mbit = 200; b.queueing("pfifo_fast") },
	"two sent by one":               func(b *box) { b.queueing("pfifo_fast") },
	"backlog of a full core":        func(b *box) { b.core(1, 96, 1, 1); b.s.After.Softnet[1] = Softnet{Processed: 90000, Dropped: 900} },
	"full core, ring's unknown": func(b *box) {
		b.core(1, 96, 1, 1).lose("eth0", 9000)
		b.s.IRQs, b.s.Before.IRQs, b.s.After.IRQs = []IRQ{}, nil, nil
	},
	"a long shaper's name": func(b *box) {
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "ifb4enp3s0.100", Kind: "ifb", Up: true, TxQueues: 1, RxQueues: 1})
		b.s.Before.Links["ifb4enp3s0.100"], b.s.After.Links["ifb4enp3s0.100"] = Link{}, Link{RxPackets: 400000}
	},
}
