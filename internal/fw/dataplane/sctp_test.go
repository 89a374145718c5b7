package dataplane

// Rules know the ports of SCTP. Translation changes its addresses alone: its checksum, which
// covers no address, stays right.
func testSCTP(h *harness) {
	const (
		asks, answers   = "sctp 192.168.1.10:4000 > 198.51.100.9:5000 len 20", "sctp 198.51.100.9:5000 > 192.168.1.10:4000 len 20"
		asks6, answers6 = "sctp [fd00:1::10]:4000 > [2001:db8:9::1]:5000 len 20", "sctp [2001:db8:9::1]:5000 > [fd00:1::10]:4000 len 20"
	)
	h.plays([]play{
		{"rules by port", "block\npass proto sctp to port 5000", []step{
			{"xdp lan", asks, "forward rule wan " + asks + " ttl 63"},
			{"xdp wan", answers, "forward state lan " + answers + " ttl 63"},
			{"tcx lan", asks6, "forward rule wan " + asks6 + " ttl 63"},
			{"tcx wan", answers6, "forward state lan " + answers6 + " ttl 63"},
			{"xdp lan", "sctp 192.168.1.10:4000 > 198.51.100.9:5001", "drop block"},
			{"xdp wan", "sctp 198.51.100.9:5001 > 192.168.1.10:4000", "drop block"},
			{"xdp lan", "132 192.168.1.10 > 198.51.100.9 len 11", "drop short"},
			{"states", "", "132 192.168.1.10:4000 > 198.51.100.9:5000 other.single 2:1 1/1; 132 fd00:1::10:4000 > 2001:db8:9::1:5000 other.single 2:1 1/1"},
		}},
		{"addresses are translated, ports stay", masquerade + "pass", []step{
			{"xdp lan", asks, "forward rule wan sctp 203.0.113.2:4000 > 198.51.100.9:5000 len 20 ttl 63"},
			{"xdp wan", "sctp 198.51.100.9:5000 > 203.0.113.2:4000 len 20", "forward state lan " + answers + " ttl 63"},
			{"tcx lan", asks6, "forward rule wan sctp [2001:db8:113::2]:4000 > [2001:db8:9::1]:5000 len 20 ttl 63"},
			{"tcx wan", "sctp [2001:db8:9::1]:5000 > [2001:db8:113::2]:4000 len 20", "forward state lan " + answers6 + " ttl 63"},
			{"xdp lan", "sctp 192.168.1.11:4000 > 198.51.100.9:5000", "drop tuple-taken"},
			{"xdp lan", "sctp 192.168.1.11:4001 > 198.51.100.9:5000", "forward rule wan sctp 203.0.113.2:4001 > 198.51.100.9:5000 ttl 63"},
		}},
		{"errors", masquerade + "pass", []step{
			{"xdp lan", asks, "forward rule wan sctp 203.0.113.2:4000 > 198.51.100.9:5000 len 20 ttl 63"},
			{"xdp wan", "icmp 198.51.100.1 > 203.0.113.2 type 3 code 1 quoted 8 quote sctp 203.0.113.2:4000 > 198.51.100.9:5000 len 20",
				"forward state lan icmp 198.51.100.1 > 192.168.1.10 type 3 code 1 ttl 63 quote sctp 192.168.1.10:4000 > 198.51.100.9:5000 len 20"},
		}},
		{"to a server", "match in on wan0 inet proto sctp to (wan0) port 5000 rdr-to 192.168.1.10 port 5000\nmatch in on wan0 inet6 to (wan0) rdr-to fd00:1::10\npass", []step{
			{"xdp wan", "sctp 198.51.100.9:7 > 203.0.113.2:5000", "forward rule lan sctp 198.51.100.9:7 > 192.168.1.10:5000 ttl 63"},
			{"xdp lan", "sctp 192.168.1.10:5000 > 198.51.100.9:7", "forward state wan sctp 203.0.113.2:5000 > 198.51.100.9:7 ttl 63"},
			{"tcx wan", "sctp [2001:db8:9::1]:7 > [2001:db8:113::2]:5000", "forward rule lan sctp [2001:db8:9::1]:7 > [fd00:1::10]:5000 ttl 63"},
		}},
	})
}

// Ports of map-e-portset: 1/15/5 has one, 2/14/5 has three, of 2/13/1 each of three blocks
// has two.
func testPortSets(h *harness) {
	ask := func(port string) string { return "udp 192.168.1.10:" + port + " > 198.51.100.9:53" }
	gets := func(port string) string {
		return "forward rule wan udp 203.0.113.2:" + port + " > 198.51.100.9:53 ttl 63"
	}
	h.plays([]play{
		{"one", "match out on wan0 inet nat-to (wan0) map-e-portset 1/15/5\nmatch out on wan0 inet6 nat-to (wan0) map-e-portset 1/15/6\npass", []step{
			{"xdp lan", ask("1"), gets("32773")},
			{"tcx lan", ask("2"), "drop nat-ports"},
			{"xdp lan", "tcp 192.168.1.10:2 > 198.51.100.9:53 S", "forward rule wan tcp 203.0.113.2:32773 > 198.51.100.9:53 S ttl 63"},
			{"tcx lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53", "forward rule wan udp [2001:db8:113::2]:32774 > [2001:db8:9::1]:53 ttl 63"},
		}},
		{"three", "nat on wan0 inet from any to any -> (wan0) map-e-portset 2/14/5\npass", []step{
			{"xdp lan", ask("1"), gets("$p")}, {"tcx lan", ask("2"), gets("$q")}, {"xdp lan", ask("3"), gets("$r")},
			{"xdp lan", ask("4"), "drop nat-ports"},
			{"tcx wan", "udp 198.51.100.9:53 > 203.0.113.2:16389", "forward state lan udp 198.51.100.9:53 > 192.168.1.10:$a ttl 63"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:32773", "forward state lan udp 198.51.100.9:53 > 192.168.1.10:$b ttl 63"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:49157", "forward state lan udp 198.51.100.9:53 > 192.168.1.10:$c ttl 63"},
		}},
		{"blocks", "match out on wan0 inet nat-to (wan0) map-e-portset 2/13/1\npass", []step{
			{"xdp lan", ask("1"), gets("$p")}, {"xdp lan", ask("2"), gets("$q")}, {"xdp lan", ask("3"), gets("$r")},
			{"xdp lan", ask("4"), gets("$s")}, {"xdp lan", ask("5"), gets("$t")}, {"xdp lan", ask("6"), gets("$u")},
			{"xdp lan", ask("7"), "drop nat-ports"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:16386", "forward state lan udp 198.51.100.9:53 > 192.168.1.10:$a ttl 63"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:49155", "forward state lan udp 198.51.100.9:53 > 192.168.1.10:$b ttl 63"},
		}},
	})
}
