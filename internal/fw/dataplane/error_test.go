package dataplane

// ICMP errors about known and unknown connections.
func testICMPErrors(h *harness) {
	const open = masquerade + "block\npass in on lan0\npass out on wan0"
	const bothWays = masquerade + "match in on lan0 inet proto udp to 192.168.1.1 port 5353 rdr-to 198.51.100.9 port 53\n"
	udpOut := step{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 203.0.113.2:$p > 198.51.100.9:53 ttl 63"}
	tcpOut := step{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 1000", "forward rule wan tcp 203.0.113.2:$p > 198.51.100.9:80 S seq 1000 ttl 63"}
	h.plays([]play{
		{"a router's about udp", open, []step{
			udpOut,
			{"xdp wan", "icmp 203.0.113.77 > 203.0.113.2 type 11 quote udp 203.0.113.2:$p > 198.51.100.9:53 ttl 1 len 20",
				"forward state lan icmp 203.0.113.77 > 192.168.1.10 type 11 ttl 63 quote udp 192.168.1.10:4000 > 198.51.100.9:53 len 20 ttl 1"},
			{"tcx wan", "icmp 203.0.113.77 > 203.0.113.2 type 11 quote udp 203.0.113.2:$p > 198.51.100.9:53 ttl 1 len 20",
				"forward state lan icmp 203.0.113.77 > 192.168.1.10 type 11 ttl 63 quote udp 192.168.1.10:4000 > 198.51.100.9:53 len 20 ttl 1"},
			{"states", "", "17 192.168.1.10:4000 > 198.51.100.9:53 as 203.0.113.2:$p > 198.51.100.9:53 udp.first 1:0 1/0"},
		}},
		{"with eight bytes of it", open, []step{
			udpOut,
			{"xdp wan", "icmp 198.51.100.9 > 203.0.113.2 type 3 code 3 quoted 8 quote udp 203.0.113.2:$p > 198.51.100.9:53 len 20",
				"forward state lan icmp 198.51.100.9 > 192.168.1.10 type 3 code 3 ttl 63 quote udp 192.168.1.10:4000 > 198.51.100.9:53 len 20"},
		}},
		{"of udp without checksum", open, []step{
			udpOut,
			{"xdp wan", "icmp 198.51.100.9 > 203.0.113.2 type 3 code 3 quote udp 203.0.113.2:$p > 198.51.100.9:53 nosum len 20",
				"forward state lan icmp 198.51.100.9 > 192.168.1.10 type 3 code 3 ttl 63 quote udp 192.168.1.10:4000 > 198.51.100.9:53 len 20 nosum"},
		}},
		{"path MTU about tcp", open, []step{
			tcpOut,
			{"xdp wan", "icmp 203.0.113.77 > 203.0.113.2 type 3 code 4 id 0 quote tcp 203.0.113.2:$p > 198.51.100.9:80 S seq 1000",
				"forward state lan icmp 203.0.113.77 > 192.168.1.10 type 3 code 4 ttl 63 quote tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 1000"},
		}},
		{"a sequence number beyond the window", open, []step{
			tcpOut,
			{"xdp wan", "icmp 203.0.113.77 > 203.0.113.2 type 3 code 4 quote tcp 203.0.113.2:$p > 198.51.100.9:80 A seq 900000", "drop icmp-mismatch"},
			{"xdp wan", "icmp 203.0.113.77 > 203.0.113.2 type 3 code 4 quote tcp 203.0.113.2:$p > 198.51.100.9:80 A seq 68036",
				"forward state lan icmp 203.0.113.77 > 192.168.1.10 type 3 code 4 ttl 63 quote tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 68036"},
			{"xdp wan", "icmp 203.0.113.77 > 203.0.113.2 type 3 code 4 quote tcp 203.0.113.2:$p > 198.51.100.9:80 A seq 68037", "drop icmp-mismatch"},
		}},
		{"too big, v6", open, []step{
			{"xdp lan", "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53", "forward rule wan udp [2001:db8:113::2]:$p > [2001:db8:9::1]:53 ttl 63"},
			{"xdp wan", "icmp6 2001:db8:77::1 > 2001:db8:113::2 type 2 quote udp [2001:db8:113::2]:$p > [2001:db8:9::1]:53 len 20",
				"forward state lan icmp6 2001:db8:77::1 > fd00:1::10 type 2 ttl 63 quote udp [fd00:1::10]:4000 > [2001:db8:9::1]:53 len 20"},
			{"tcx wan", "icmp6 2001:db8:9::1 > 2001:db8:113::2 type 1 code 4 quote udp [2001:db8:113::2]:$p > [2001:db8:9::1]:53 len 20",
				"forward state lan icmp6 2001:db8:9::1 > fd00:1::10 type 1 code 4 ttl 63 quote udp [fd00:1::10]:4000 > [2001:db8:9::1]:53 len 20"},
		}},
		{"about a ping", open, []step{
			{"xdp lan", "icmp 192.168.1.10 > 198.51.100.9 type 8 id 3", "forward rule wan icmp 203.0.113.2 > 198.51.100.9 type 8 id $p ttl 63"},
			{"xdp wan", "icmp 203.0.113.77 > 203.0.113.2 type 11 quote icmp 203.0.113.2 > 198.51.100.9 type 8 id $p ttl 1",
				"forward state lan icmp 203.0.113.77 > 192.168.1.10 type 11 ttl 63 quote icmp 192.168.1.10 > 198.51.100.9 type 8 id 3 ttl 1"},
		}},
		{"the server's, behind a translated destination", rdr + "pass", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:8080 S seq 5", "forward rule lan tcp 198.51.100.9:4000 > 192.168.1.10:80 S seq 5 ttl 63"},
			{"xdp lan", "icmp 192.168.1.10 > 198.51.100.9 type 3 code 3 quote tcp 198.51.100.9:4000 > 192.168.1.10:80 S seq 5 ttl 63",
				"forward state wan icmp 203.0.113.2 > 198.51.100.9 type 3 code 3 ttl 63 quote tcp 198.51.100.9:4000 > 203.0.113.2:8080 S seq 5 ttl 63"},
			{"xdp lan", "icmp 192.168.1.77 > 198.51.100.9 type 11 quote tcp 198.51.100.9:4000 > 192.168.1.10:80 S seq 5 ttl 1",
				"forward state wan icmp 192.168.1.77 > 198.51.100.9 type 11 ttl 63 quote tcp 198.51.100.9:4000 > 203.0.113.2:8080 S seq 5 ttl 1"},
		}},
		{"about another's packet", open, []step{
			udpOut,
			{"xdp wan", "icmp 203.0.113.77 > 203.0.113.2 type 11 quote udp 203.0.113.3:5 > 198.51.100.9:53 ttl 1", "drop icmp-mismatch"},
		}},
		{"about nothing known: as the rules say", open, []step{
			{"xdp wan", "icmp 203.0.113.77 > 203.0.113.2 type 11 quote udp 203.0.113.2:5 > 198.51.100.9:53 ttl 1", "drop block"},
			{"xdp lan", "icmp 192.168.1.10 > 198.51.100.9 type 3 code 3 quote udp 198.51.100.9:5 > 192.168.1.10:9",
				"forward rule wan icmp 192.168.1.10 > 198.51.100.9 type 3 code 3 ttl 63 quote udp 198.51.100.9:5 > 192.168.1.10:9"},
			{"states", "", ""},
		}},
		{"other messages make no state", "pass", []step{
			{"xdp lan", "icmp 192.168.1.10 > 198.51.100.9 type 13 id 3 len 12", "forward rule wan icmp 192.168.1.10 > 198.51.100.9 type 13 id 3 len 12 ttl 63"},
			{"xdp lan", "icmp6 fd00:1::10 > 2001:db8:9::1 type 200", "forward rule wan icmp6 fd00:1::10 > 2001:db8:9::1 type 200 ttl 63"},
			{"states", "", "1 192.168.1.10:3 > 198.51.100.9:13 icmp.first $a:0 1/0"},
		}},
		{"a quoted later fragment", open, []step{
			udpOut,
			{"xdp wan", "icmp 203.0.113.77 > 203.0.113.2 type 11 quote udp 203.0.113.2 > 198.51.100.9 frag 1480 id 5 len 30", "drop icmp-mismatch"},
		}},
		{"the box's own, about what was handed up", masquerade + "pass", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53 len 1473", "up up-mtu came"},
			{"out lan", "icmp 192.168.1.1 > 192.168.1.10 type 3 code 4 quote udp 192.168.1.10:4000 > 198.51.100.9:53 len 1473", "up state"},
		}},
		{"the box's own, about what came with a translated destination", rdr + "pass", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:8080 S ttl 1", "up up-ttl leaves tcp 198.51.100.9:4000 > 192.168.1.10:80 S ttl 1"},
			{"out wan", "icmp 203.0.113.2 > 198.51.100.9 type 11 quote tcp 198.51.100.9:4000 > 192.168.1.10:80 S ttl 1",
				"up state icmp 203.0.113.2 > 198.51.100.9 type 11 quote tcp 198.51.100.9:4000 > 203.0.113.2:8080 S ttl 1"},
		}},
		{"the box's own, about what has both addresses translated", bothWays + "pass", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 192.168.1.1:5353 ttl 1", "up up-ttl record0 udp 192.168.1.10:4000 > 198.51.100.9:53 ttl 1"},
			{"out lan", "icmp 192.168.1.1 > 192.168.1.10 type 11 quote udp 192.168.1.10:4000 > 198.51.100.9:53 ttl 1",
				"up state icmp 192.168.1.1 > 192.168.1.10 type 11 quote udp 192.168.1.10:4000 > 192.168.1.1:5353 ttl 1"},
			{"xdp lan", "udp 192.168.1.10:4000 > 192.168.1.1:5353 ttl 2", "forward state wan udp 203.0.113.2:$p > 198.51.100.9:53 ttl 1"},
			{"tcx wan", "udp 198.51.100.9:53 > 203.0.113.2:$p ttl 1", "up up-ttl record0 udp 198.51.100.9:53 > 192.168.1.10:4000 ttl 1"},
			{"out wan", "icmp 203.0.113.2 > 198.51.100.9 type 11 quote udp 198.51.100.9:53 > 192.168.1.10:4000 ttl 1",
				"up state icmp 203.0.113.2 > 198.51.100.9 type 11 quote udp 198.51.100.9:53 > 203.0.113.2:$p ttl 1"},
			{"out lan", "icmp 192.168.1.1 > 192.168.1.10 type 11 quote udp 192.168.1.10:4001 > 198.51.100.9:53 ttl 1", "up rule"},
		}},
		{"the box's own, while later fragments go up, which have no ports", bothWays + "pass", []step{
			{"xdp lan", "udp 192.168.1.10:0 > 192.168.1.1:5353 ttl 1", "up up-ttl record0 udp 192.168.1.10 > 198.51.100.9:53 ttl 1"},
			{"xdp lan", "udp 192.168.1.10:4000 > 192.168.1.1:5353 frag 0+ id 5 len 24 ttl 1", "up up-ttl record0 udp 192.168.1.10:4000 > 198.51.100.9:53 frag 0+ id 5 len 24 ttl 1"},
			{"xdp lan", "udp 192.168.1.10 > 192.168.1.1 frag 32+ id 5 len 24 ttl 1", "up up-ttl record0 udp 192.168.1.10 > 198.51.100.9 frag 32+ id 5 len 24 ttl 1"},
			{"out lan", "icmp 192.168.1.1 > 192.168.1.10 type 11 quote udp 192.168.1.10:0 > 198.51.100.9:53 ttl 1",
				"up state icmp 192.168.1.1 > 192.168.1.10 type 11 quote udp 192.168.1.10 > 192.168.1.1:5353 ttl 1"},
		}},
		{"expired", open, []step{
			udpOut,
			{"wait", "60", ""},
			{"xdp wan", "icmp 203.0.113.77 > 203.0.113.2 type 11 quote udp 203.0.113.2:$p > 198.51.100.9:53 ttl 1", "drop block"},
		}},
	})
}
