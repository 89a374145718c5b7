package doctor

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// shares are machines whose cause must come first however busy their cores are. Each
// builds its machine with cores that are busy for this share, in percent, and that lose
// packets.
var shares = []struct {
	name, check string
	remedy      string // part of the cause's remedies
	build       func(busy float64) *box
	beside      string // a full core that is a limit of its own
}{
	{"slow clock", "PWR-1", "cpupower frequency-set", func(busy float64) *box {
		b := forwarding(4, busy-2).lose("eth1", 40000)
		for i := range b.s.CPUs {
			b.s.CPUs[i].Governor, b.s.CPUs[i].MHz, b.s.CPUs[i].MaxMHz = "schedutil", 800, 3400
		}
		return b
	}, ""},
	{"stolen time", "VIRT-1", "mpstat", func(busy float64) *box {
		b := forwarding(4, busy-39).lose("eth1", 40000)
		b.s.Host.Hypervisor = true
		for id := range 4 {
			b.take(id, func(t *CPUTimes) *uint64 { return &t.Steal }, 37)
		}
		return b
	}, ""},
	{"heat", "THR-1", "thermal_throttle", func(busy float64) *box {
		b := forwarding(4, busy-2).lose("eth1", 40000)
		for id := range 4 {
			b.s.After.Throttle[id] += 300
		}
		return b
	}, ""},
	{"lock of HTB", "LOCK-1", "tc -s -d qdisc show dev eth0", func(busy float64) *box {
		return forwarding(8, busy-2).lose("eth1", 9000).disciplines(Qdisc{Interface: "eth0", Kind: "htb", Handle: "1:0", Parent: "root", Bytes: 3.2e9, Packets: 4e6, Drops: 61000, Overlimits: 900, Requeues: 48000})
	}, ""},
	{"HTB below its rate", "LOCK-1", "tc -s -d qdisc show dev eth0", func(busy float64) *box {
		return forwarding(4, busy-2).disciplines(Qdisc{Interface: "eth0", Kind: "htb", Handle: "1:0", Parent: "root", RateBits: 900e6, Bytes: 400e6, Packets: 440000, Drops: 60000, Overlimits: 120000, Requeues: 900})
	}, ""},
	{"WireGuard, one flow", "TUN-1", "more tunnels", func(busy float64) *box {
		return tunnelled8("wireguard", "wg0", 1).core(2, busy-1, 1, 0).lose("eth0", 9000)
	}, ""},
	{"IPsec, one flow", "TUN-1", "per-CPU SAs", func(busy float64) *box {
		return tunnelled8("ipsec", "", 1).core(2, busy-1, 1, 0).lose("eth0", 9000)
	}, ""},
	{"OpenVPN's tun", "TUN-1", "DCO", func(busy float64) *box {
		b := newBox(4)
		b.card("eth0", "igb", 1000, 4, 4)
		b.traffic("eth0", 1400, 9000, 200, 300, 7000).cores(12, 0, 1, 2).core(3, 4, 0.38*busy, 0.62*busy-4).lose("eth0", 9000)
		return b.tunnel(Tunnel{Kind: "tun", Interface: "tun0"}, 150000)
	}, ""},
	{"interrupts", "IRQ-5", "ethtool -C eth0 rx-usecs 50", func(busy float64) *box { return interruptedBox(busy, 0.22) }, ""},
	{"interrupts, and more softirq", "IRQ-5", "ethtool -C eth0 rx-usecs 50", func(busy float64) *box { return interruptedBox(busy, 0.56) }, ""},
	{"slot of 2 Gbit/s", "PCI-1", "lspci", func(busy float64) *box {
		b := newBox(4)
		n := b.card("eth0", "ixgbe", 10000, 4, 4)
		n.PCI.Speed, n.PCI.Width = 2.5, 1
		return b.traffic("eth0", 1500, 37500, 37000, 38000, 37500).cores(busy-2, 0, 1, 2, 3).lose("eth0", 60000)
	}, "CPU-2"},
	{"half duplex", "LINK-1", "autoneg on", func(busy float64) *box {
		b := newBox(4)
		b.card("eth0", "igb", 1000, 4, 4)
		n := b.card("eth1", "igb", 100, 4, 4)
		n.MaxMbit, n.Duplex = 1000, "half"
		b.traffic("eth0", 900, 900, 800, 900, 850).traffic("eth1", 900, 1500, 1400, 1450, 1500).core(0, busy-2, 1, 1)
		return b.counted("eth1", "rx_crc_errors", 900).errors("eth1", Link{TxErrors: 700})
	}, "CPU-1"},
	{"a program", "CPU-3", "top -1 -H", func(busy float64) *box {
		b := newBox(4)
		b.card("eth1", "igb", 1000, 4, 4)
		return b.traffic("eth1", 700, 9000, 9100, 15000, 8900).cores(20, 0, 1, 3).core(2, 0.17*busy, 0.05*busy, 0.78*busy).lose("eth1", 22000)
	}, ""},
}

// take gives a part of a core's idle time, in percent of all its time, to something else.
func (b *box) take(id int, to func(*CPUTimes) *uint64, percent float64) {
	t := b.s.After.CPUs[id]
	part := min(uint64(percent*ticks/100), t.Idle)
	*to(&t) += part
	t.Idle -= part
	b.s.After.CPUs[id] = t
}

// interruptedBox is a box whose card interrupts for nearly each packet, and loses some.
// Softirqs take a part of the busy time, and interrupts the rest.
func interruptedBox(busy, part float64) *box {
	softirq := math.Round(part * busy)
	b := newBox(4)
	b.card("eth0", "e1000e", 1000, 1, 1).Coalesce = &Coalesce{}
	b.traffic("eth0", 300, 90000).core(0, softirq, 1, 1)
	b.take(0, func(t *CPUTimes) *uint64 { return &t.IRQ }, busy-2-softirq)
	b.s.After.IRQs[b.s.IRQs[0].Number] = map[int]uint64{0: 100 + 820000}
	return b.lose("eth0", 5000)
}

// TestCauseAtAnyLoad checks that no share of busy time hides a cause: it is the verdict,
// and what it explains keeps no remedy of its own.
func TestCauseAtAnyLoad(t *testing.T) {
	symptoms := []string{"CPU-1", "CPU-2", "RING-1", "SQZ-1", "RSS-1", "RPS-1", "SHAPE-1", "ERR-1"}
	for _, m := range shares {
		for busy := 60.0; busy <= 100; busy++ {
			t.Run(fmt.Sprintf("%s/%.0f", m.name, busy), func(t *testing.T) {
				r, err := Examine(m.build(busy).s, nil)
				if err != nil {
					t.Fatal(err)
				}
				if r.Verdict.Check != m.check || r.Verdict.Severity != Critical && m.check != "LINK-1" {
					t.Errorf("verdict %s, %s: %s", r.Verdict.Check, r.Verdict.Severity, r.Verdict.Sentence)
				}
				if f := findingOf(r, m.check); f == nil || !slices.ContainsFunc(f.Remedies, func(r Remedy) bool { return strings.Contains(r.Command+" "+r.Text, m.remedy) }) {
					t.Errorf("%s does not offer %q", m.check, m.remedy)
				}
				for _, f := range r.Findings {
					if f.Severity > Notice && f.Because == "" && slices.Contains(symptoms, f.Check) && f.Check != m.beside {
						t.Errorf("%s stands beside its cause: %s", f.Check, f.Says)
					}
					if f.Because != "" && strings.Contains(f.Says, "have room") {
						t.Errorf("%s is explained by %s, and says: %s", f.Check, f.Because, f.Says)
					}
				}
			})
		}
	}
}

// TestSmallRing checks that a ring that is only small keeps its remedy, whatever share of
// their time the cores are busy.
func TestSmallRing(t *testing.T) {
	for busy := 10.0; busy < 100*full; busy++ {
		r, err := Examine(forwarding(4, busy-2).lose("eth1", 40000).s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f := findingOf(r, "RING-1"); r.Verdict.Check != "RING-1" || f.Because != "" || f.Remedies[0].Command != "ethtool -G eth1 rx 2048" {
			t.Errorf("%.0f %% busy: verdict %s: %s", busy, r.Verdict.Check, r.Verdict.Sentence)
		}
	}
}
