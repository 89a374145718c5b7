package dataplane

const (
	masquerade = "match out on wan0 inet nat-to (wan0)\nmatch out on wan0 inet6 nat-to (wan0)\n"
	rdr        = "match in on wan0 inet proto tcp to (wan0) port 8080 rdr-to 192.168.1.10 port 80\n"
)

// Connections through the box, with and without translation.
func testForward(h *harness) {
	h.plays([]play{
		{"tcp without translation", "pass", []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 5", "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 5 ttl 63"},
			{"xdp wan", "tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 9 ack 6", "forward state lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 9 ack 6 ttl 63"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 6 ack 10 len 7", "forward state wan tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 6 ack 10 len 7 ttl 63"},
			{"states", "", "6 192.168.1.10:4000 > 198.51.100.9:80 tcp.established 2:2 2/1"},
		}},
		{"tcp, v4, source translated", masquerade + "pass", []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 5", "forward rule wan tcp 203.0.113.2:$p > 198.51.100.9:80 S seq 5 ttl 63"},
			{"xdp wan", "tcp 198.51.100.9:80 > 203.0.113.2:$p SA seq 9 ack 6", "forward state lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 9 ack 6 ttl 63"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 6 ack 10 len 7", "forward state wan tcp 203.0.113.2:$p > 198.51.100.9:80 A seq 6 ack 10 len 7 ttl 63"},
			{"tcx lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 13 ack 10 len 7", "forward state wan tcp 203.0.113.2:$p > 198.51.100.9:80 A seq 13 ack 10 len 7 ttl 63"},
			{"states", "", "6 192.168.1.10:4000 > 198.51.100.9:80 as 203.0.113.2:$p > 198.51.100.9:80 tcp.established 2:2 3/1"},
		}},
		{"udp, v6, source translated", masquerade + "pass", []step{
			{"xdp lan", "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53 len 5", "forward rule wan udp [2001:db8:113::2]:$p > [2001:db8:9::1]:53 len 5 ttl 63"},
			{"xdp wan", "udp [2001:db8:9::1]:53 > [2001:db8:113::2]:$p len 9", "forward state lan udp [2001:db8:9::1]:53 > [fd00:1::10]:4000 len 9 ttl 63"},
			{"states", "", "17 fd00:1::10:4000 > 2001:db8:9::1:53 as 2001:db8:113::2:$p > 2001:db8:9::1:53 udp.single 2:1 1/1"},
			{"xdp lan", "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53", "forward state wan udp [2001:db8:113::2]:$p > [2001:db8:9::1]:53 ttl 63"},
			{"states", "", "17 fd00:1::10:4000 > 2001:db8:9::1:53 as 2001:db8:113::2:$p > 2001:db8:9::1:53 udp.multiple 2:2 2/1"},
		}},
		{"udp without checksum stays so", masquerade + "pass", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53 nosum", "forward rule wan udp 203.0.113.2:$p > 198.51.100.9:53 ttl 63 nosum"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:$p nosum", "forward state lan udp 198.51.100.9:53 > 192.168.1.10:4000 ttl 63 nosum"},
			{"tcx lan", "udp 192.168.1.10:4000 > 198.51.100.9:53 nosum", "forward state wan udp 203.0.113.2:$p > 198.51.100.9:53 ttl 63 nosum"},
		}},
		{"ping, v4 and v6, source translated", masquerade + "pass", []step{
			{"xdp lan", "icmp 192.168.1.10 > 198.51.100.9 type 8 id 3", "forward rule wan icmp 203.0.113.2 > 198.51.100.9 type 8 id $p ttl 63"},
			{"xdp wan", "icmp 198.51.100.9 > 203.0.113.2 id $p", "forward state lan icmp 198.51.100.9 > 192.168.1.10 id 3 ttl 63"},
			{"xdp lan", "icmp6 fd00:1::10 > 2001:db8:9::1 type 128 id 3", "forward rule wan icmp6 2001:db8:113::2 > 2001:db8:9::1 type 128 id $q ttl 63"},
			{"xdp wan", "icmp6 2001:db8:9::1 > 2001:db8:113::2 type 129 id $q", "forward state lan icmp6 2001:db8:9::1 > fd00:1::10 type 129 id 3 ttl 63"},
			{"tcx lan", "icmp6 fd00:1::10 > 2001:db8:9::1 type 128 id 3", "forward state wan icmp6 2001:db8:113::2 > 2001:db8:9::1 type 128 id $q ttl 63"},
		}},
		{"replies of ICMP that nobody asked for match no rule that keeps state", "block\npass", []step{
			{"xdp wan", "icmp 198.51.100.9 > 192.168.1.10 id 3", "drop block"},
			{"tcx wan", "icmp 198.51.100.9 > 192.168.1.10 type 14 id 3", "drop block"},
			{"xdp wan", "icmp6 2001:db8:9::1 > fd00:1::10 type 129 id 3", "drop block"},
			{"xdp wan", "icmp 198.51.100.9 > 203.0.113.2 id 3", "drop block"},
			{"states", "", ""},
			{"xdp lan", "icmp 192.168.1.10 > 198.51.100.9 type 8 id 3", "forward rule wan icmp 192.168.1.10 > 198.51.100.9 type 8 id 3 ttl 63"},
			{"tcx wan", "icmp 198.51.100.9 > 192.168.1.10 id 4", "drop block"},
			{"xdp wan", "icmp 198.51.100.9 > 192.168.1.10 id 3", "forward state lan icmp 198.51.100.9 > 192.168.1.10 id 3 ttl 63"},
		}},
		{"they match rules without a state", "block\npass inet proto icmp no state\npass inet6 proto icmp6 no state", []step{
			{"xdp wan", "icmp 198.51.100.9 > 192.168.1.10 id 3", "forward rule lan icmp 198.51.100.9 > 192.168.1.10 id 3 ttl 63"},
			{"tcx wan", "icmp6 2001:db8:9::1 > fd00:1::10 type 129 id 3", "forward rule lan icmp6 2001:db8:9::1 > fd00:1::10 type 129 id 3 ttl 63"},
		}},
		{"destination translated", rdr + "pass", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:8080 S seq 5", "forward rule lan tcp 198.51.100.9:4000 > 192.168.1.10:80 S seq 5 ttl 63"},
			{"xdp lan", "tcp 192.168.1.10:80 > 198.51.100.9:4000 SA seq 7 ack 6", "forward state wan tcp 203.0.113.2:8080 > 198.51.100.9:4000 SA seq 7 ack 6 ttl 63"},
		}},
		{"destination translated by the rule that passes, out by where it goes", "block\npass in on wan0 inet proto tcp to (wan0) port 8080 rdr-to 192.168.1.10 port 80\npass out on lan0 inet proto tcp to 192.168.1.10 port 80", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:8080 S seq 5", "forward rule lan tcp 198.51.100.9:4000 > 192.168.1.10:80 S seq 5 ttl 63"},
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:8081 S seq 5", "drop block"},
		}},
		{"destination and source translated, out by where it came in", "match in on lan0 inet proto tcp to 203.0.113.2 port 8080 rdr-to 192.168.1.10 port 80\nmatch out on lan0 inet proto tcp to 192.168.1.10 port 80 nat-to (lan0)\npass", []step{
			{"xdp lan", "tcp 192.168.1.20:4000 > 203.0.113.2:8080 S seq 5", "forward rule lan tcp 192.168.1.1:$p > 192.168.1.10:80 S seq 5 ttl 63"},
			{"states", "", "6 192.168.1.20:4000 > 203.0.113.2:8080 as 192.168.1.1:$p > 192.168.1.10:80 tcp.first 1:0 1/0"},
		}},
		{"destination translated where it leaves: it leaves elsewhere", "match out on lan0 inet proto tcp to 192.168.1.77 port 80 rdr-to 198.51.100.8 port 3128\npass", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 192.168.1.77:80 S seq 5", "forward rule wan tcp 198.51.100.9:4000 > 198.51.100.8:3128 S seq 5 ttl 63"},
			{"xdp wan", "tcp 198.51.100.8:3128 > 198.51.100.9:4000 SA seq 7 ack 6", "forward state wan tcp 192.168.1.77:80 > 198.51.100.9:4000 SA seq 7 ack 6 ttl 63"},
			{"tcx wan", "tcp 198.51.100.9:4000 > 192.168.1.77:80 A seq 6 ack 8 len 3", "forward state wan tcp 198.51.100.9:4000 > 198.51.100.8:3128 A seq 6 ack 8 len 3 ttl 63"},
		}},
		{"the same in IPv6, with source translation, out by the same interface", "pass in\nmatch out on wan0 inet6 proto udp to port 53 nat-to (wan0)\npass out on wan0 inet6 proto udp to port 53 rdr-to 2001:db8:9::2", []step{
			{"xdp lan", "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53 len 5", "forward rule wan udp [2001:db8:113::2]:$p > [2001:db8:9::2]:53 len 5 ttl 63"},
			{"xdp wan", "udp [2001:db8:9::2]:53 > [2001:db8:113::2]:$p len 9", "forward state lan udp [2001:db8:9::1]:53 > [fd00:1::10]:4000 len 9 ttl 63"},
		}},
		{"rdr-to of outgoing packets to the box itself", "match out on wan0 inet proto tcp to 198.51.100.9 port 80 rdr-to 203.0.113.2\npass", []step{
			{"xdp lan", "tcp 192.168.1.11:4000 > 198.51.100.9:80 S seq 5", "forward gateway lan icmp 192.168.1.1 > 192.168.1.11 type 3 code 1 quote tcp 192.168.1.11:4000 > 198.51.100.9:80 S seq 5"},
		}},
		{"both ways: the out crossing sees the destination of the in crossing", "match in on lan0 inet proto tcp to 203.0.113.7 port 8080 rdr-to 198.51.100.9 port 80\nmatch out on wan0 inet proto tcp to 198.51.100.9 port 80 rdr-to 198.51.100.8\npass", []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 203.0.113.7:8080 S seq 5", "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.8:80 S seq 5 ttl 63"},
			{"xdp wan", "tcp 198.51.100.8:80 > 192.168.1.10:4000 SA seq 7 ack 6", "forward state lan tcp 203.0.113.7:8080 > 192.168.1.10:4000 SA seq 7 ack 6 ttl 63"},
		}},
		{"another protocol by its addresses", "match out on wan0 inet nat-to (wan0)\npass", []step{
			{"xdp lan", "47 192.168.1.10 > 198.51.100.9 len 20", "forward rule wan 47 203.0.113.2 > 198.51.100.9 len 20 ttl 63"},
			{"xdp wan", "47 198.51.100.9 > 203.0.113.2 len 20", "forward state lan 47 198.51.100.9 > 192.168.1.10 len 20 ttl 63"},
		}},
		{"a static port stays, and collides", "match out on wan0 inet nat-to (wan0) static-port\npass", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 203.0.113.2:4000 > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.20:4000 > 198.51.100.9:53", "drop tuple-taken"},
		}},
		{"a range of ports, until there is none", "match out on wan0 inet proto udp nat-to (wan0) port 6000:6001\npass", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule wan udp 203.0.113.2:$p > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53", "forward rule wan udp 203.0.113.2:$q > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:3 > 198.51.100.9:53", "drop nat-ports"},
			{"xdp lan", "udp 192.168.1.10:3 > 198.51.100.8:53", "forward rule wan udp 203.0.113.2:$r > 198.51.100.8:53 ttl 63"},
		}},
		{"a translation without address of the family", "match out on wan0 inet6 nat-to (ppp9)\npass", []step{
			{"xdp lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53", "drop nat-address"},
		}},
		{"blocked", "block\npass out", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "drop block"},
			{"tcx lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "drop block"},
			{"states", "", ""},
		}},
		{"blocked where it leaves", "pass in\nblock out", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "drop block"},
			{"states", "", ""},
		}},
		{"no rule, no state", "match in on lan0 from 10.0.0.0/8 tag x", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward no-rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
			{"states", "", ""},
		}},
		{"no state", "pass no state", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
			{"states", "", ""},
		}},
		{"one side keeps no state and is evaluated again", "pass in on lan0 no state\npass out on wan0\npass in on wan0 no state\nblock out on lan0", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward state wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
			{"xdp wan", "udp 198.51.100.9:53 > 192.168.1.10:1", "drop block"},
		}},
		{"a tag is seen where the packet leaves", "block out\npass in tag good\npass out tagged good", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
		}},
		{"the state keeps the tag of the side that keeps it", "block\npass in on lan0 tag good\npass out on wan0 tagged good no state", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward state wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
		}},
		{"replies have the tag of the out side", "block\npass in on lan0 no state\npass out on wan0 tag good\npass out on lan0 tagged good no state", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
			{"xdp wan", "udp 198.51.100.9:53 > 192.168.1.10:1", "forward state lan udp 198.51.100.9:53 > 192.168.1.10:1 ttl 63"},
		}},
		{"but not what the in side had set", "block\npass in on lan0 tag good no state\npass out on wan0\npass out on lan0 tagged good no state", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
			{"xdp wan", "udp 198.51.100.9:53 > 192.168.1.10:1", "drop block"},
		}},
	})
}
