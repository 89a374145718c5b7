package dataplane

const (
	nat64 = "pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0)\npass in on wan0 inet6\nblock out\n"
	nat46 = "pass in on wan0 inet proto tcp to 203.0.113.2 port 80 af-to inet6 from 2001:db8:46::/96 to fd00:1::10 port 8080\n"
)

// Packets that af-to translates to the other address family.
func testFamilies(h *harness) {
	h.plays([]play{
		{"tcp to IPv4", nat64, []step{
			{"xdp lan", "tcp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:80 S seq 5", "forward rule wan tcp 203.0.113.2:$p > 198.51.100.9:80 S seq 5 ttl 63"},
			{"xdp wan", "tcp 198.51.100.9:80 > 203.0.113.2:$p SA seq 9 ack 6", "forward state lan tcp [64:ff9b::c633:6409]:80 > [fd00:1::10]:4000 SA seq 9 ack 6 ttl 63"},
			{"xdp lan", "tcp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:80 A seq 6 ack 10 len 7", "forward state wan tcp 203.0.113.2:$p > 198.51.100.9:80 A seq 6 ack 10 len 7 ttl 63"},
			{"tcx lan", "tcp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:80 A seq 13 ack 10 len 7", "forward state wan tcp 203.0.113.2:$p > 198.51.100.9:80 A seq 13 ack 10 len 7 ttl 63"},
			{"tcx wan", "tcp 198.51.100.9:80 > 203.0.113.2:$p A seq 10 ack 20 len 3", "forward state lan tcp [64:ff9b::c633:6409]:80 > [fd00:1::10]:4000 A seq 10 ack 20 len 3 ttl 63"},
			{"states", "", "6 fd00:1::10:4000 > 64:ff9b::c633:6409:80 as 203.0.113.2:$p > 198.51.100.9:80 tcp.established 2:2 3/2"},
		}},
		{"udp to IPv4", nat64, []step{
			{"tcx lan", "udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53 len 5", "forward rule wan udp 203.0.113.2:$p > 198.51.100.9:53 len 5 ttl 63"},
			{"tcx wan", "udp 198.51.100.9:53 > 203.0.113.2:$p len 9", "forward state lan udp [64:ff9b::c633:6409]:53 > [fd00:1::10]:4000 len 9 ttl 63"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:$p len 9 nosum", "forward state lan udp [64:ff9b::c633:6409]:53 > [fd00:1::10]:4000 len 9 ttl 63"},
			{"tcx wan", "udp 198.51.100.9:53 > 203.0.113.2:$p len 1000 nosum", "forward state lan udp [64:ff9b::c633:6409]:53 > [fd00:1::10]:4000 len 1000 ttl 63"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:$p len 1001 nosum", "forward state lan udp [64:ff9b::c633:6409]:53 > [fd00:1::10]:4000 len 1001 ttl 63"},
		}},
		{"ping to IPv4", nat64, []step{
			{"xdp lan", "icmp6 fd00:1::10 > 64:ff9b::c633:6409 type 128 id 3 len 11", "forward rule wan icmp 203.0.113.2 > 198.51.100.9 type 8 id $p len 11 ttl 63"},
			{"xdp wan", "icmp 198.51.100.9 > 203.0.113.2 id $p len 11", "forward state lan icmp6 64:ff9b::c633:6409 > fd00:1::10 type 129 id 3 len 11 ttl 63"},
			{"tcx lan", "icmp6 fd00:1::10 > 64:ff9b::c633:6409 type 128 id 3 len 11", "forward state wan icmp 203.0.113.2 > 198.51.100.9 type 8 id $p len 11 ttl 63"},
			{"tcx wan", "icmp 198.51.100.9 > 203.0.113.2 id $p len 11", "forward state lan icmp6 64:ff9b::c633:6409 > fd00:1::10 type 129 id 3 len 11 ttl 63"},
		}},
		{"to IPv6", nat46, []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:80 S seq 5", "forward rule lan tcp [2001:db8:46::c633:6409]:$p > [fd00:1::10]:8080 S seq 5 ttl 63"},
			{"xdp lan", "tcp [fd00:1::10]:8080 > [2001:db8:46::c633:6409]:$p SA seq 9 ack 6", "forward state wan tcp 203.0.113.2:80 > 198.51.100.9:4000 SA seq 9 ack 6 ttl 63"},
		}},
		{"fragments", nat64, []step{
			{"xdp lan", "udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53 len 56 frag 0+ id 77", "forward rule wan udp 203.0.113.2:$p > 198.51.100.9:53 frag 0+ id 77 len 56 ttl 63"},
			{"xdp lan", "udp fd00:1::10 > 64:ff9b::c633:6409 len 16 frag 64 id 77", "forward state wan udp 203.0.113.2 > 198.51.100.9 frag 64 id 77 len 16 ttl 63"},
			{"tcx wan", "udp 198.51.100.9:53 > 203.0.113.2:$p len 56 frag 0+ id 78", "forward state lan udp [64:ff9b::c633:6409]:53 > [fd00:1::10]:4000 frag 0+ id 78 len 56 ttl 63"},
			{"tcx wan", "udp 198.51.100.9 > 203.0.113.2 len 16 frag 64 id 78", "forward state lan udp 64:ff9b::c633:6409 > fd00:1::10 frag 64 id 78 len 16 ttl 63"},
			{"tcx wan", "udp 198.51.100.9:53 > 203.0.113.2:$p len 56 frag 0+ id 79 nosum", "drop af-to"},
			{"xdp lan", "icmp6 fd00:1::10 > 64:ff9b::c633:6409 type 128 id 3 len 56 frag 0+", "drop af-to"},
		}},
		{"no room on the way", nat64, []step{
			{"xdp lan", "udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53 ttl 1", "forward gateway-ttl lan icmp6 fd00:1::1 > fd00:1::10 type 3 quote udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53 ttl 1"},
			{"xdp lan", "udp [fd00:1::10]:4000 > [64:ff9b::cb00:7107]:53", "up up-neighbour back s2"},
		}},
	})
	testFamilyErrors(h)
}

// ICMP errors about them, in both directions.
func testFamilyErrors(h *harness) {
	udpOut := step{"xdp lan", "udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53 len 20", "forward rule wan udp 203.0.113.2:$p > 198.51.100.9:53 len 20 ttl 63"}
	tcpOut := step{"xdp lan", "tcp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:80 S seq 1000", "forward rule wan tcp 203.0.113.2:$p > 198.51.100.9:80 S seq 1000 ttl 63"}
	pingOut := step{"xdp lan", "icmp6 fd00:1::10 > 64:ff9b::c633:6409 type 128 id 3 len 11", "forward rule wan icmp 203.0.113.2 > 198.51.100.9 type 8 id $p len 11 ttl 63"}
	const (
		sent4 = "quote udp 203.0.113.2:$p > 198.51.100.9:53 len 20 ttl 9"
		sent6 = "quote udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53 len 20 ttl 9"
		back6 = "quote udp [64:ff9b::c633:6409]:53 > [fd00:1::10]:4000 len 20 ttl 9"
		back4 = "quote udp 198.51.100.9:53 > 203.0.113.2:$p len 20 ttl 9"
	)
	to6 := func(at, kind, src, want string) step {
		if want == "" {
			return step{at, "icmp " + src + " > 203.0.113.2 " + kind + " " + sent4, "drop af-to"}
		}
		return step{at, "icmp " + src + " > 203.0.113.2 " + kind + " " + sent4, "forward state lan icmp6 64:ff9b::c633:640" + src[len(src)-1:] + " > fd00:1::10 " + want + " ttl 63 " + sent6}
	}
	to4 := func(at, kind, want string) step {
		if want == "" {
			return step{at, "icmp6 fd00:1::77 > 64:ff9b::c633:6409 " + kind + " " + back6, "drop af-to"}
		}
		return step{at, "icmp6 fd00:1::77 > 64:ff9b::c633:6409 " + kind + " " + back6, "forward state wan icmp 203.0.113.2 > 198.51.100.9 " + want + " ttl 63 " + back4}
	}
	const router, server = "198.51.100.1", "198.51.100.9"
	h.plays([]play{
		{"errors to IPv6", nat64, []step{
			udpOut,
			to6("xdp wan", "type 11", router, "type 3"), to6("tcx wan", "type 11 code 1", router, "type 3 code 1"),
			to6("xdp wan", "type 3 code 3", server, "type 1 code 4"), to6("tcx wan", "type 3 code 3", server, "type 1 code 4"),
			to6("xdp wan", "type 3 code 0", router, "type 1"), to6("xdp wan", "type 3 code 1", router, "type 1"), to6("tcx wan", "type 3 code 12", router, "type 1"),
			to6("xdp wan", "type 3 code 2", server, "type 4 code 1 mtu 6"), to6("tcx wan", "type 3 code 9", router, "type 1 code 1"), to6("xdp wan", "type 3 code 13", router, "type 1 code 1"),
			to6("xdp wan", "type 3 code 14", router, ""), to6("tcx wan", "type 3 code 16", router, ""), to6("xdp wan", "type 4", router, ""), to6("xdp wan", "type 5", router, ""),
			to6("tcx wan", "type 12 id 0", router, "type 4"), to6("xdp wan", "type 12 code 2 id 768", router, "type 4 mtu 4"), to6("xdp wan", "type 12 id 2048", router, "type 4 mtu 7"),
			to6("xdp wan", "type 12 id 3839", router, "type 4 mtu 8"), to6("xdp wan", "type 12 id 4864", router, "type 4 mtu 24"),
			to6("xdp wan", "type 12 id 1024", router, ""), to6("tcx wan", "type 12 id 5120", router, ""), to6("xdp wan", "type 12 code 1", router, ""),
			{"states", "", "17 fd00:1::10:4000 > 64:ff9b::c633:6409:53 as 203.0.113.2:$p > 198.51.100.9:53 udp.first 1:0 1/0"},
		}},
		{"errors to IPv4", nat64, []step{
			udpOut,
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:$p len 20", "forward state lan udp [64:ff9b::c633:6409]:53 > [fd00:1::10]:4000 len 20 ttl 63"},
			to4("xdp lan", "type 1", "type 3 code 1"), to4("tcx lan", "type 1 code 1", "type 3 code 10"), to4("xdp lan", "type 1 code 2", "type 3 code 1"),
			to4("xdp lan", "type 1 code 4", "type 3 code 3"), to4("tcx lan", "type 1 code 5", ""), to4("xdp lan", "type 3", "type 11"), to4("tcx lan", "type 3 code 1", "type 11 code 1"),
			to4("xdp lan", "type 2 mtu 1500", "type 3 code 4 mtu 1480"), to4("tcx lan", "type 2 mtu 1000", "type 3 code 4 mtu 1260"), to4("xdp lan", "type 2 id 1", "type 3 code 4 mtu 65516"),
			to4("xdp lan", "type 4 code 1 mtu 6", "type 3 code 2"), to4("tcx lan", "type 4 code 2", ""), to4("xdp lan", "type 4 mtu 5", "type 12 id 512"), to4("xdp lan", "type 4 mtu 7", "type 12 id 2048"),
			to4("tcx lan", "type 4 mtu 30", "type 12 id 4096"), to4("xdp lan", "type 4 mtu 3", ""), to4("xdp lan", "type 4 id 1", ""),
		}},
		{"path MTU to IPv6", nat64, []step{
			udpOut,
			to6("xdp wan", "type 3 code 4 mtu 1400", router, "type 2 mtu 1420"), to6("tcx wan", "type 3 code 4 mtu 1260", router, "type 2 mtu 1280"), to6("tcx wan", "type 3 code 4 mtu 576", router, "type 2 mtu 1280"),
			to6("xdp wan", "type 3 code 4", router, "type 2 mtu 1280"),
			{"xdp lan", "udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53 len 1450", "forward state wan udp 203.0.113.2:$p > 198.51.100.9:53 len 1450 ttl 63"},
			{"xdp wan", "icmp 198.51.100.1 > 203.0.113.2 type 3 code 4 quoted 8 quote udp 203.0.113.2:$p > 198.51.100.9:53 len 1464 ttl 9",
				"forward state lan icmp6 64:ff9b::c633:6401 > fd00:1::10 type 2 mtu 1280 ttl 63 quote udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53 len 1464 ttl 9"},
			{"tcx wan", "icmp 198.51.100.1 > 203.0.113.2 type 3 code 4 quoted 8 quote udp 203.0.113.2:$p > 198.51.100.9:53 len 1465 ttl 9",
				"forward state lan icmp6 64:ff9b::c633:6401 > fd00:1::10 type 2 mtu 1512 ttl 63 quote udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53 len 1465 ttl 9"},
		}},
		{"errors about tcp", nat64, []step{
			tcpOut,
			{"tcx wan", "icmp 198.51.100.1 > 203.0.113.2 type 3 code 4 mtu 1400 quote tcp 203.0.113.2:$p > 198.51.100.9:80 A seq 900000", "drop icmp-mismatch"},
			{"tcx wan", "icmp 198.51.100.1 > 203.0.113.2 type 3 code 4 mtu 1400 quote tcp 203.0.113.2:$p > 198.51.100.9:80 S seq 1000 ttl 9",
				"forward state lan icmp6 64:ff9b::c633:6401 > fd00:1::10 type 2 mtu 1420 ttl 63 quote tcp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:80 S seq 1000 ttl 9"},
			{"xdp wan", "icmp 198.51.100.1 > 203.0.113.2 type 11 quoted 8 quote tcp 203.0.113.2:$p > 198.51.100.9:80 S seq 1000 ttl 9",
				"forward state lan icmp6 64:ff9b::c633:6401 > fd00:1::10 type 3 ttl 63 quote tcp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:80 seq 1000 ttl 9"},
		}},
		{"errors about pings", nat64, []step{
			pingOut,
			{"xdp wan", "icmp 198.51.100.1 > 203.0.113.2 type 11 quote icmp 203.0.113.2 > 198.51.100.9 type 8 id $p len 11 ttl 1",
				"forward state lan icmp6 64:ff9b::c633:6401 > fd00:1::10 type 3 ttl 63 quote icmp6 fd00:1::10 > 64:ff9b::c633:6409 type 128 id 3 len 11 ttl 1"},
			{"tcx lan", "icmp6 fd00:1::10 > 64:ff9b::c633:6409 type 1 code 4 quote icmp6 64:ff9b::c633:6409 > fd00:1::10 type 129 id 3 len 11 ttl 1",
				"forward state wan icmp 203.0.113.2 > 198.51.100.9 type 3 code 3 ttl 63 quote icmp 198.51.100.9 > 203.0.113.2 id $p len 11 ttl 1"},
		}},
		{"errors about fragments", nat64, []step{
			udpOut,
			{"xdp wan", "icmp 198.51.100.1 > 203.0.113.2 type 11 code 1 quote udp 203.0.113.2:$p > 198.51.100.9:53 frag 0+ id 77 len 56",
				"forward state lan icmp6 64:ff9b::c633:6401 > fd00:1::10 type 3 code 1 ttl 63 quote udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53 frag 0+ id 77 len 56"},
			{"tcx lan", "icmp6 fd00:1::10 > 64:ff9b::c633:6409 type 2 mtu 1400 quote udp [64:ff9b::c633:6409]:53 > [fd00:1::10]:4000 frag 0+ id 78 len 56",
				"forward state wan icmp 203.0.113.2 > 198.51.100.9 type 3 code 4 mtu 1372 ttl 63 quote udp 198.51.100.9:53 > 203.0.113.2:$p frag 0+ id 78 len 56"},
			{"xdp wan", "icmp 198.51.100.1 > 203.0.113.2 type 11 code 1 quote udp 203.0.113.2 > 198.51.100.9 frag 64+ id 77 len 56", "drop icmp-mismatch"},
			{"xdp wan", "icmp 198.51.100.1 > 203.0.113.2 type 11 quote udp 203.0.113.2:$p > 198.51.100.9:53 opts 8", "drop icmp-mismatch"},
			{"tcx lan", "icmp6 fd00:1::10 > 64:ff9b::c633:6409 type 3 quote udp [64:ff9b::c633:6409]:53 > [fd00:1::10]:4000 ext dst", "drop icmp-mismatch"},
			{"tcx wan", "icmp 198.51.100.1 > 203.0.113.2 type 11 ttl 1 quote udp 203.0.113.2:$p > 198.51.100.9:53", "drop gateway-ttl"},
		}},
		{"errors to IPv4's clients", nat46, []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:80 S seq 5", "forward rule lan tcp [2001:db8:46::c633:6409]:$p > [fd00:1::10]:8080 S seq 5 ttl 63"},
			{"xdp lan", "icmp6 fd00:1::77 > 2001:db8:46::c633:6409 type 3 quote tcp [2001:db8:46::c633:6409]:$p > [fd00:1::10]:8080 S seq 5 ttl 1",
				"forward state wan icmp 203.0.113.2 > 198.51.100.9 type 11 ttl 63 quote tcp 198.51.100.9:4000 > 203.0.113.2:80 S seq 5 ttl 1"},
			{"tcx wan", "icmp 198.51.100.1 > 203.0.113.2 type 11 quote tcp 203.0.113.2:80 > 198.51.100.9:4000 SA seq 9 ttl 1", "drop icmp-mismatch"},
		}},
		{"routers behind a shorter prefix", "pass in on lan0 inet6 to 2001:db8:6400::/40 af-to inet from (wan0)\n", []step{
			{"xdp lan", "udp [fd00:1::10]:4000 > [2001:db8:64c6:3364:9::]:53", "forward rule wan udp 203.0.113.2:$p > 198.51.100.9:53 ttl 63"},
			{"xdp wan", "icmp 198.51.100.1 > 203.0.113.2 type 11 quote udp 203.0.113.2:$p > 198.51.100.9:53 ttl 1",
				"forward state lan icmp6 2001:db8:64c6:3364:1:: > fd00:1::10 type 3 ttl 63 quote udp [fd00:1::10]:4000 > [2001:db8:64c6:3364:9::]:53 ttl 1"},
		}},
		{"routers behind no prefix", "pass in on lan0 inet6 to 2001:db8:64::53 af-to inet from (wan0) to 198.51.100.9\n", []step{
			{"xdp lan", "udp [fd00:1::10]:4000 > [2001:db8:64::53]:53", "forward rule wan udp 203.0.113.2:$p > 198.51.100.9:53 ttl 63"},
			{"xdp wan", "icmp 198.51.100.1 > 203.0.113.2 type 11 quote udp 203.0.113.2:$p > 198.51.100.9:53 ttl 1",
				"forward state lan icmp6 2001:db8:64::c633:6401 > fd00:1::10 type 3 ttl 63 quote udp [fd00:1::10]:4000 > [2001:db8:64::53]:53 ttl 1"},
			{"tcx wan", "icmp 198.51.100.9 > 203.0.113.2 type 3 code 3 quote udp 203.0.113.2:$p > 198.51.100.9:53 ttl 1",
				"forward state lan icmp6 2001:db8:64::53 > fd00:1::10 type 1 code 4 ttl 63 quote udp [fd00:1::10]:4000 > [2001:db8:64::53]:53 ttl 1"},
		}},
	})
}
