package dataplane

// The rules that most of these plays have in common.
const (
	natList = "nat on wan0 inet from 192.168.1.0/24 to any -> (wan0)\nnat on wan0 inet6 from fd00:1::/64 to any -> (wan0)\n"
	rdrList = "rdr on wan0 inet proto tcp from any to (wan0) port 8080 -> 192.168.1.10 port 80\n"
)

// FreeBSD's translation lists, which stand before the filter rules.
func testLists(h *harness) {
	h.plays([]play{
		{"nat, v4 and v6", natList + "pass", []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 5", "forward rule wan tcp 203.0.113.2:$p > 198.51.100.9:80 S seq 5 ttl 63"},
			{"xdp wan", "tcp 198.51.100.9:80 > 203.0.113.2:$p SA seq 9 ack 6", "forward state lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 9 ack 6 ttl 63"},
			{"tcx lan", "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53", "forward rule wan udp [2001:db8:113::2]:$q > [2001:db8:9::1]:53 ttl 63"},
			{"tcx wan", "udp [2001:db8:9::1]:53 > [2001:db8:113::2]:$q", "forward state lan udp [2001:db8:9::1]:53 > [fd00:1::10]:4000 ttl 63"},
		}},
		{"the first rule translates; the filter sees the new source", "nat on wan0 inet from any to any -> 203.0.113.64\nnat on wan0 inet from any to any -> 203.0.113.65\nblock\npass in on lan0\npass out on wan0 from 203.0.113.64", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 203.0.113.64:$p > 198.51.100.9:53 ttl 63"},
		}},
		{"and the old one no longer", "nat on wan0 inet from any to any -> 203.0.113.64\nblock\npass in on lan0\npass out on wan0 from 192.168.1.10", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "drop block"},
		}},
		{"no nat", "no nat on wan0 from any to 198.51.100.0/24\n" + natList + "pass", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 192.168.1.10:4000 > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:4000 > 9.9.9.9:53", "forward rule wan udp 203.0.113.2:$p > 9.9.9.9:53 ttl 63"},
		}},
		{"nat pass skips the rules of the way out", "nat pass on wan0 inet from 192.168.1.10 to any -> (wan0)\nblock\npass in on lan0", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 203.0.113.2:$p > 198.51.100.9:53 ttl 63"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:$p", "forward state lan udp 198.51.100.9:53 > 192.168.1.10:4000 ttl 63"},
			{"xdp lan", "udp 192.168.1.11:4000 > 198.51.100.9:53", "drop block"},
		}},
		{"static-port, and a range", "nat on wan0 inet proto udp from any to any port 500 -> (wan0) static-port\nnat on wan0 inet from any to any -> (wan0) port 6000\npass", []step{
			{"xdp lan", "udp 192.168.1.10:500 > 198.51.100.9:500", "forward rule wan udp 203.0.113.2:500 > 198.51.100.9:500 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:500 > 198.51.100.9:501", "forward rule wan udp 203.0.113.2:6000 > 198.51.100.9:501 ttl 63"},
		}},
		{"rdr; the filter sees the new destination", rdrList + "block in\npass in on wan0 proto tcp to 192.168.1.10 port 80\npass out", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:8080 S seq 5", "forward rule lan tcp 198.51.100.9:4000 > 192.168.1.10:80 S seq 5 ttl 63"},
			{"xdp lan", "tcp 192.168.1.10:80 > 198.51.100.9:4000 SA seq 7 ack 6", "forward state wan tcp 203.0.113.2:8080 > 198.51.100.9:4000 SA seq 7 ack 6 ttl 63"},
		}},
		{"rdr alone opens nothing", rdrList + "block in on wan0", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:8080 S", "drop block"},
		}},
		{"rdr pass, v6, a range of ports", "rdr pass on wan0 inet6 proto udp from any to (wan0) port 100:103 -> fd00:1::10 port 200:*\nblock\npass out", []step{
			{"xdp wan", "udp [2001:db8:9::1]:4000 > [2001:db8:113::2]:102", "forward rule lan udp [2001:db8:9::1]:4000 > [fd00:1::10]:202 ttl 63"},
			{"xdp lan", "udp [fd00:1::10]:202 > [2001:db8:9::1]:4000", "forward state wan udp [2001:db8:113::2]:102 > [2001:db8:9::1]:4000 ttl 63"},
			{"xdp wan", "udp [2001:db8:9::1]:4000 > [2001:db8:113::2]:104", "drop block"},
		}},
		{"no rdr", "no rdr on wan0 proto tcp from 198.51.100.0/24 to any\n" + rdrList + "pass", []step{
			{"xdp wan", "tcp 9.9.9.9:4000 > 203.0.113.2:8080 S seq 5", "forward rule lan tcp 9.9.9.9:4000 > 192.168.1.10:80 S seq 5 ttl 63"},
			{"tcx wan", "tcp 198.51.100.9:4000 > 203.0.113.2:8080 S seq 5", "up local"},
		}},
		{"rdr to several, in turn", "rdr on wan0 inet proto udp from any to (wan0) port 53 -> { 192.168.1.10, 192.168.1.11 }\npass", []step{
			{"xdp wan", "udp 198.51.100.9:1 > 203.0.113.2:53", "forward rule lan udp 198.51.100.9:1 > 192.168.1.10:53 ttl 63"},
			{"states", "", "17 198.51.100.9:1 > 203.0.113.2:53 as 198.51.100.9:1 > 192.168.1.10:53 udp.first 1:0 1/0"},
		}},
		{"binat of an address, both ways", "binat on wan0 inet from 192.168.1.10 to any -> 203.0.113.64\npass", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 203.0.113.64:4000 > 198.51.100.9:53 ttl 63"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.64:4000", "forward state lan udp 198.51.100.9:53 > 192.168.1.10:4000 ttl 63"},
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.64:22 S seq 1", "forward rule lan tcp 198.51.100.9:4000 > 192.168.1.10:22 S seq 1 ttl 63"},
			{"xdp lan", "tcp 192.168.1.10:22 > 198.51.100.9:4000 SA seq 7 ack 2", "forward state wan tcp 203.0.113.64:22 > 198.51.100.9:4000 SA seq 7 ack 2 ttl 63"},
		}},
		{"binat of networks keeps the host", "binat on wan0 inet from 192.168.1.0/28 to 198.51.100.0/24 -> 203.0.113.64/28\nbinat on wan0 inet6 from fd00:1::/64 to any -> 2001:db8:77::/64\npass", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 203.0.113.74:4000 > 198.51.100.9:53 ttl 63"},
			{"xdp wan", "udp 198.51.100.9:5 > 203.0.113.74:6", "forward rule lan udp 198.51.100.9:5 > 192.168.1.10:6 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:4000 > 9.9.9.9:53", "forward rule wan udp 192.168.1.10:4000 > 9.9.9.9:53 ttl 63"},
			{"tcx lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53", "forward rule wan udp [2001:db8:77::10]:1 > [2001:db8:9::1]:53 ttl 63"},
			{"tcx wan", "udp [2001:db8:9::1]:2 > [2001:db8:77::10]:3", "forward rule lan udp [2001:db8:9::1]:2 > [fd00:1::10]:3 ttl 63"},
		}},
		{"binat is before nat, rdr before binat", natList + "binat on wan0 inet from 192.168.1.10 to any -> 203.0.113.2\nrdr on wan0 inet proto tcp from any to (wan0) port 8080 -> 192.168.1.10 port 80\npass", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 203.0.113.2:4000 > 198.51.100.9:53 ttl 63"},
			{"xdp wan", "tcp 198.51.100.9:1 > 203.0.113.2:8080 S seq 1", "forward rule lan tcp 198.51.100.9:1 > 192.168.1.10:80 S seq 1 ttl 63"},
			{"xdp wan", "tcp 198.51.100.9:1 > 203.0.113.2:8081 S seq 1", "forward rule lan tcp 198.51.100.9:1 > 192.168.1.10:8081 S seq 1 ttl 63"},
		}},
		{"no binat does not stop nat", "no binat on wan0 from 192.168.1.10 to any\nbinat on wan0 inet from 192.168.1.10 to any -> 203.0.113.64\n" + natList + "pass", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 203.0.113.2:$p > 198.51.100.9:53 ttl 63"},
		}},
		{"a tag is for the filter", "rdr on wan0 inet proto tcp from any to (wan0) port 8080 tag web -> 192.168.1.10 port 80\nblock\npass tagged web", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:8080 S seq 5", "forward rule lan tcp 198.51.100.9:4000 > 192.168.1.10:80 S seq 5 ttl 63"},
		}},
		{"both ways at once", rdrList + "rdr on lan0 inet proto tcp from any to (wan0) port 8080 -> 192.168.1.10 port 80\nnat on lan0 inet from 192.168.1.0/24 to 192.168.1.10 -> (lan0)\npass", []step{
			{"xdp lan", "tcp 192.168.1.20:4000 > 203.0.113.2:8080 S seq 5", "forward rule lan tcp 192.168.1.1:$p > 192.168.1.10:80 S seq 5 ttl 63"},
		}},
		{"an anchor's rules, and who may meet them", "load anchor \"a\" {\nnat on wan0 inet from any to any -> 203.0.113.64\n}\nnat-anchor \"a\" on wan0 proto udp from 192.168.1.10\n" + natList + "pass", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 203.0.113.64:$p > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.11:4000 > 198.51.100.9:53", "forward rule wan udp 203.0.113.2:$q > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:53 S", "forward rule wan tcp 203.0.113.2:$r > 198.51.100.9:53 S ttl 63"},
		}},
		{"no in an anchor ends the list", "load anchor \"p/a\" {\nno nat on wan0 from 192.168.1.10 to any\n}\nnat-anchor \"p/*\"\n" + natList + "pass", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 192.168.1.10:4000 > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.11:4000 > 198.51.100.9:53", "forward rule wan udp 203.0.113.2:$q > 198.51.100.9:53 ttl 63"},
		}},
		{"anchors without rules", "nat-anchor \"x/*\"\nrdr-anchor \"x/*\"\nbinat-anchor \"y\"\npass", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 192.168.1.10:4000 > 198.51.100.9:53 ttl 63"},
		}},
		{"no address of the family", "nat on wan0 inet6 from any to any -> (ppp9)\npass", []step{
			{"xdp lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53", "drop nat-address"},
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 192.168.1.10:4000 > 198.51.100.9:53 ttl 63"},
		}},
		{"the box's own", "nat on wan0 inet from any to any -> 203.0.113.64\nblock out\npass out proto udp from 203.0.113.64", []step{
			{"out wan", "udp 203.0.113.2:4000 > 198.51.100.9:53", "up rule udp 203.0.113.64:$p > 198.51.100.9:53"},
			{"out wan", "tcp 203.0.113.2:4000 > 198.51.100.9:53 S", "drop block"},
		}},
	})
}

// Ways to choose one of several addresses.
func testChoices(h *harness) {
	h.plays([]play{
		{"bitmask of nat-to and binat-to of networks", "match out on wan0 inet from 192.168.1.0/28 nat-to 203.0.113.64/28 bitmask\nmatch on wan0 inet6 from fd00:1::/64 binat-to 2001:db8:77::/64\npass", []step{
			{"xdp lan", "icmp 192.168.1.10 > 198.51.100.9 type 8 id 3", "forward rule wan icmp 203.0.113.74 > 198.51.100.9 type 8 id $p ttl 63"},
			{"xdp lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53", "forward rule wan udp [2001:db8:77::10]:1 > [2001:db8:9::1]:53 ttl 63"},
			{"xdp wan", "udp [2001:db8:9::1]:2 > [2001:db8:77::10]:3", "forward rule lan udp [2001:db8:9::1]:2 > [fd00:1::10]:3 ttl 63"},
		}},
		{"sticky-address: a source keeps what it was given, others go on in turn", "match out on wan0 inet nat-to { 203.0.113.64, 203.0.113.65, 203.0.113.66 } sticky-address\nmatch out on wan0 inet6 nat-to { 2001:db8:113::64, 2001:db8:113::65 } sticky-address\npass", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule wan udp 203.0.113.64:$a > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.11:1 > 198.51.100.9:53", "forward rule wan udp 203.0.113.65:$b > 198.51.100.9:53 ttl 63"},
			{"tcx lan", "udp 192.168.1.10:2 > 198.51.100.9:53", "forward rule wan udp 203.0.113.64:$c > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.12:1 > 198.51.100.9:53", "forward rule wan udp 203.0.113.66:$d > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "tcp 192.168.1.11:1 > 9.9.9.9:80 S", "forward rule wan tcp 203.0.113.65:$e > 9.9.9.9:80 S ttl 63"},
			{"xdp lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53", "forward rule wan udp [2001:db8:113::64]:$f > [2001:db8:9::1]:53 ttl 63"},
			{"xdp lan", "udp [fd00:1::11]:1 > [2001:db8:9::1]:53", "forward rule wan udp [2001:db8:113::65]:$g > [2001:db8:9::1]:53 ttl 63"},
			{"xdp lan", "udp [fd00:1::10]:2 > [2001:db8:9::1]:53", "forward rule wan udp [2001:db8:113::64]:$h > [2001:db8:9::1]:53 ttl 63"},
		}},
		{"source-hash: the same for each packet of a source", "match out on wan0 inet nat-to 203.0.113.64/26 source-hash\npass", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule wan udp 203.0.113.$x:$a > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:2 > 9.9.9.9:53", "forward rule wan udp 203.0.113.$x:$b > 9.9.9.9:53 ttl 63"},
			{"tcx lan", "icmp 192.168.1.10 > 9.9.9.9 type 8 id 7", "forward rule wan icmp 203.0.113.$x > 9.9.9.9 type 8 id $c ttl 63"},
		}},
		{"random, and sticky", "match out on wan0 inet proto udp nat-to 203.0.113.64/26 random sticky-address\npass", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule wan udp 203.0.113.$x:$a > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.11:1 > 198.51.100.9:53", "forward rule wan udp 203.0.113.$y:$b > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:54", "forward rule wan udp 203.0.113.$x:$c > 198.51.100.9:54 ttl 63"},
			{"xdp lan", "udp 192.168.1.11:2 > 198.51.100.9:54", "forward rule wan udp 203.0.113.$y:$d > 198.51.100.9:54 ttl 63"},
		}},
		{"the weight of a network is that of its addresses", "match out on wan0 inet nat-to { 203.0.113.64/31 weight 2, 203.0.113.66 }\npass", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule wan udp 203.0.113.64:$a > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53", "forward rule wan udp 203.0.113.65:$b > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:3 > 198.51.100.9:53", "forward rule wan udp 203.0.113.64:$c > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:4 > 198.51.100.9:53", "forward rule wan udp 203.0.113.65:$d > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:5 > 198.51.100.9:53", "forward rule wan udp 203.0.113.66:$e > 198.51.100.9:53 ttl 63"},
		}},
	})
}

// nat-to of incoming packets: the way out sees the new source, and so does the box itself.
func testNatIn(h *harness) {
	h.plays([]play{
		{"forwarded, v4 and v6", "match in on lan0 inet from 192.168.1.0/24 nat-to 203.0.113.64\nmatch in on lan0 inet6 nat-to 2001:db8:113::64\nblock out\npass in\npass out on wan0 from { 203.0.113.64, 2001:db8:113::64 }", []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 5", "forward rule wan tcp 203.0.113.64:$p > 198.51.100.9:80 S seq 5 ttl 63"},
			{"xdp wan", "tcp 198.51.100.9:80 > 203.0.113.64:$p SA seq 9 ack 6", "forward state lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 9 ack 6 ttl 63"},
			{"tcx lan", "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53", "forward rule wan udp [2001:db8:113::64]:$q > [2001:db8:9::1]:53 ttl 63"},
			{"tcx wan", "udp [2001:db8:9::1]:53 > [2001:db8:113::64]:$q", "forward state lan udp [2001:db8:9::1]:53 > [fd00:1::10]:4000 ttl 63"},
		}},
		{"by the rule that passes, without state on the way out", "block\npass in on lan0 inet nat-to 203.0.113.64 static-port\npass out on wan0 from 203.0.113.64 no state\npass in on wan0 no state", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 203.0.113.64:4000 > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward state wan udp 203.0.113.64:4000 > 198.51.100.9:53 ttl 63"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.64:4000", "forward state lan udp 198.51.100.9:53 > 192.168.1.10:4000 ttl 63"},
		}},
		{"the way out translates again", "match in on lan0 inet nat-to 203.0.113.64\nmatch out on wan0 inet from 203.0.113.64 nat-to 203.0.113.65\npass", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 203.0.113.65:$p > 198.51.100.9:53 ttl 63"},
		}},
		{"both ends at once", "pass in on wan0 inet proto tcp to (wan0) port 8080 nat-to (lan0) rdr-to 192.168.1.10 port 80\npass out", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:8080 S seq 5", "forward rule lan tcp 192.168.1.1:$p > 192.168.1.10:80 S seq 5 ttl 63"},
			{"xdp lan", "tcp 192.168.1.10:80 > 192.168.1.1:$p SA seq 7 ack 6", "forward state wan tcp 203.0.113.2:8080 > 198.51.100.9:4000 SA seq 7 ack 6 ttl 63"},
		}},
		{"to the box itself", "pass in on lan0 inet proto tcp nat-to 192.168.1.99\nblock out", []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 192.168.1.1:80 S seq 5", "up local done tcp 192.168.1.99:$p > 192.168.1.1:80 S seq 5"},
			{"out lan", "tcp 192.168.1.1:80 > 192.168.1.99:$p SA seq 9 ack 6", "up state tcp 192.168.1.1:80 > 192.168.1.10:4000 SA seq 9 ack 6"},
		}},
		{"no address", "match in on lan0 inet6 nat-to (ppp9)\npass", []step{
			{"xdp lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53", "drop nat-address"},
		}},
	})
}
