package dataplane

import "testing"

// Conditions on the system that a SYN comes from. Who sends other SYNs, or other packets, is
// unknown.
func testSystems(h *harness) {
	const (
		alpha = "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 5"
		beta  = "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 5 win 1000 mss 1460"
		six   = "tcp [fd00:1::10]:4000 > [2001:db8:9::1]:80 S seq 5 win 1000 mss 1460"
	)
	pass := func(packet string) string {
		return "forward rule wan " + packet + " ttl 63"
	}
	h.plays([]play{
		{"by class, version and range", "block\npass in proto tcp from any os \"alpha 1.1\"\npass out", []step{
			{"xdp lan", alpha, pass(alpha)},
			{"tcx lan", "tcp 192.168.1.10:4001 > 198.51.100.9:80 S seq 5 ttl 24", "forward rule wan tcp 192.168.1.10:4001 > 198.51.100.9:80 S seq 5 ttl 23"},
			{"xdp lan", "tcp 192.168.1.10:4002 > 198.51.100.9:80 S seq 5 ttl 23", "drop block"},
			{"xdp lan", "tcp 192.168.1.10:4002 > 198.51.100.9:80 S seq 5 ttl 65", "drop block"},
			{"xdp lan", "tcp 192.168.1.10:4002 > 198.51.100.9:80 S seq 5 win 1000", pass("tcp 192.168.1.10:4002 > 198.51.100.9:80 S seq 5 win 1000")},
			{"tcx lan", "tcp 192.168.1.10:4003 > 198.51.100.9:80 S seq 5 win 1001", "drop block"},
			{"xdp lan", "udp 192.168.1.10:4003 > 198.51.100.9:80", "drop block"},
		}},
		{"where it leaves", "pass\nblock out from any os Beta", []step{
			{"xdp lan", alpha, pass(alpha)},
			{"tcx lan", "tcp 192.168.1.11:4000 > 198.51.100.9:80 S seq 5 win 1000 mss 1460 ttl 255", "drop block"},
			{"xdp lan", "tcp [fd00:1::10]:4000 > [2001:db8:9::1]:80 S seq 5 win 1000 mss 1460 ttl 254", "drop block"},
			{"xdp lan", six, "drop block"}, // version 2
			{"out wan", "tcp 203.0.113.2:4000 > 198.51.100.9:80 S seq 5 win 3 mss 1460 ttl 255", "drop block"},
		}},
		{"unknown", "block\npass from any os unknown no state flags any", []step{
			{"xdp lan", beta, pass(beta)},
			{"xdp lan", alpha, "drop block"},
			{"tcx lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 5 ack 7", pass("tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 5 ack 7")},
			{"tcx lan", "udp 192.168.1.10:4000 > 198.51.100.9:80", "drop block"},
		}},
	})
}

// Rules that ask for systems need the fingerprints of a load.
func TestReplaceAsksForSystems(t *testing.T) {
	h := newHarness(t, "anchor a {\npass\n}")
	rules, faults := loadTest("anchor a {\npass from any os Alpha\n}", h.host())
	if faults.HasErrors() {
		t.Fatal(faults)
	}
	p := must(h.dp.config.Program.Replace(rules, h.snapshot(), []int{0, -1}))(t)
	if err := h.dp.ReplaceRules(p, &h.dp.config.Options); err == nil {
		t.Error("the rules have no fingerprints, and are replaced")
	}
}
