package dataplane

// divert-to: XDP lets the packet pass with a mark, and TCX finds its socket. These tests have
// none, so TCX drops: test/divert_test.go has a proxy.
func testDiverts(h *harness) {
	const rules = "block\npass in on lan0 inet proto tcp to port 80 divert-to 127.0.0.1 port 8080\n" +
		"pass in on lan0 inet6 proto udp to port 53 divert-to ::1 port 5353\npass out on wan0 proto tcp to port 80 divert-reply\n"
	h.plays([]play{
		{"a connection", rules, []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 5", "up local divert"},
			{"tcx lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 6 ack 1", "drop divert"},
			{"out lan", "tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 7 ack 6", "up state"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 6 ack 8", "up local divert"},
		}},
		{"another with its addresses and ports", rules, []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 5", "up local divert"},
			{"out wan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 105", "up rule"},
			{"xdp wan", "tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 207 ack 106", "up local divert"},
			{"out lan", "tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 7 ack 6", "up state"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 6 ack 8", "up local divert"},
			{"out wan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 106 ack 208", "up state"},
		}},
		{"the box has the addresses and ports first", rules, []step{
			{"out wan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 105", "up rule"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 5", "up local divert"},
			{"out lan", "tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 7 ack 6", "up state"},
			{"xdp wan", "tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 207 ack 106", "up local divert"},
		}},
		{"nobody else joins", rules + "pass in on wan0\n", []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 5", "up local divert"},
			{"xdp wan", "tcp 198.51.100.9:80 > 192.168.1.10:4000 S seq 207", "drop tuple-taken"},
		}},
		{"no socket", rules, []step{
			{"xdp lan", "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53", "up local divert"},
			{"tcx lan", "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53", "drop divert"},
			{"out wan divert", "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53", "drop guard"}, // the stack may not forward it
		}},
	})
}
