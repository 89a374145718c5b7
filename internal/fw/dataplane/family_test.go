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
}
