package dataplane

import "testing"

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
	testFamilyGateways(h)
	testFamilyPools(h)
}

// Where the IPv6 addresses come from.
func testFamilyPools(h *harness) {
	const asked = "udp 198.51.100.9:4000 > 203.0.113.2:53"
	rule := func(afTo string) string { return "pass in on wan0 inet af-to inet6 " + afTo }
	h.plays([]play{
		{"an interface", rule("from (lan0) to fd00:1::10"), []step{
			{"xdp wan", asked, "forward rule lan udp [fd00:1::1]:$p > [fd00:1::10]:53 ttl 63"},
		}},
		{"an interface, without a destination", rule("from (wan0)"), []step{ // its network and the destination's address
			{"tcx wan", asked, "forward up-neighbour udp [2001:db8:113::2]:$p > [2001:db8:113::cb00:7102]:53 ttl 63"},
		}},
		{"a network of an interface", rule("from (wan0:network) to fd00:1::10"), []step{
			{"xdp wan", "udp 198.51.100.9:1 > 203.0.113.2:53", "forward rule lan udp [2001:db8:113::]:$p > [fd00:1::10]:53 ttl 63"},
			{"tcx wan", "udp 198.51.100.9:2 > 203.0.113.2:53", "forward rule lan udp [2001:db8:113::1]:$q > [fd00:1::10]:53 ttl 63"},
			{"xdp wan", "udp 198.51.100.9:3 > 203.0.113.2:53", "forward rule lan udp [2001:db8:113::2]:$r > [fd00:1::10]:53 ttl 63"},
		}},
		{"a table", "table <t> { 2001:db8:46::1, 2001:db8:46::2, 192.0.2.1 }\n" + rule("from <t> to { fd00:1::10, fd00:1::10 }"), []step{
			{"xdp wan", "udp 198.51.100.9:1 > 203.0.113.2:53", "forward rule lan udp [2001:db8:46::1]:$p > [fd00:1::10]:53 ttl 63"},
			{"tcx wan", "udp 198.51.100.9:2 > 203.0.113.2:53", "forward rule lan udp [2001:db8:46::2]:$q > [fd00:1::10]:53 ttl 63"},
		}},
		{"a table without such addresses", "table <t> { 192.0.2.1 }\n" + rule("from <t>"), []step{
			{"xdp wan", asked, "drop nat-address"},
		}},
	})
}

// What rules choose beside af-to: a gateway of the new family for packets, one of their own for
// replies, and a routing table.
func testFamilyGateways(h *harness) {
	h.net.addTableRoutes()
	const (
		asked    = "udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53"
		answered = "forward state lan udp [64:ff9b::c633:6409]:53 > [fd00:1::10]:4000 ttl 63"
		told     = "forward gateway lan icmp6 fd00:1::1 > fd00:1::10 type 1 quote " + asked
	)
	to := func(hop string) string {
		return "pass in on lan0 route-to " + hop + " inet6 to 64:ff9b::/96 af-to inet from (wan0)\nblock in on wan0\nblock out"
	}
	by := func(reason, at string) string {
		return "forward " + reason + " " + at + " udp 203.0.113.2:$p > 198.51.100.9:53 ttl 63"
	}
	lost := []step{{"xdp lan", asked, told}, {"tcx lan", asked, told}, {"states", "", ""}}
	h.plays([]play{
		{"route-to", to("(lan0 192.168.1.10)"), []step{
			{"xdp lan", asked, by("rule", "lan")},
			{"tcx lan", asked, by("state", "lan")},
			{"tcx wan", "udp 198.51.100.9:53 > 203.0.113.2:$p", answered},
			{"xdp wan", "icmp 198.51.100.1 > 203.0.113.2 type 11 quote udp 203.0.113.2:$p > 198.51.100.9:53 ttl 1",
				"forward state lan icmp6 64:ff9b::c633:6401 > fd00:1::10 type 3 ttl 63 quote " + asked + " ttl 1"},
		}},
		{"route-to an interface", to("lan0"), []step{
			{"tcx lan", "udp [fd00:1::10]:4000 > [64:ff9b::c0a8:10a]:53", "forward rule lan udp 203.0.113.2:$p > 192.168.1.10:53 ttl 63"},
			{"xdp lan", asked, told}, // it is not on the link
		}},
		{"route-to in turn", to("{ (lan0 192.168.1.10), (wan0 203.0.113.1) } round-robin"), []step{
			{"xdp lan", "udp [fd00:1::10]:1 > [64:ff9b::c633:6409]:53", "forward rule lan udp 203.0.113.2:$q > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp [fd00:1::10]:2 > [64:ff9b::c633:6409]:53", "forward rule wan udp 203.0.113.2:$r > 198.51.100.9:53 ttl 63"},
			{"tcx lan", "udp [fd00:1::10]:3 > [64:ff9b::c633:6409]:53", "forward rule lan udp 203.0.113.2:$s > 198.51.100.9:53 ttl 63"},
		}},
		{"route-to a neighbour that is not known", to("(wan0 203.0.113.9)"), []step{
			{"xdp lan", asked, "up up-neighbour back s1"},
			{"tcx lan", asked, "forward up-neighbour udp 203.0.113.2:$p > 198.51.100.9:53 ttl 63"}, // the kernel writes the MACs
		}},
		{"route-to nowhere", to("(wan0 10.9.9.9)"), lost},
		{"route-to the old family", to("(wan0 2001:db8:113::1)"), lost},
		{"reply-to", "pass in on wan0 reply-to (lan0 192.168.1.10) inet proto tcp to 203.0.113.2 port 80 af-to inet6 from 2001:db8:46::/96 to fd00:1::10 port 8080\nblock in on lan0", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:80 S seq 5", "forward rule lan tcp [2001:db8:46::c633:6409]:$p > [fd00:1::10]:8080 S seq 5 ttl 63"},
			{"xdp lan", "tcp [fd00:1::10]:8080 > [2001:db8:46::c633:6409]:$p SA seq 9 ack 6", "forward state lan tcp 203.0.113.2:80 > 198.51.100.9:4000 SA seq 9 ack 6 ttl 63"},
			{"tcx wan", "tcp 198.51.100.9:4000 > 203.0.113.2:80 A seq 6 ack 10", "forward state lan tcp [2001:db8:46::c633:6409]:$p > [fd00:1::10]:8080 A seq 6 ack 10 ttl 63"},
		}},
		{"rtable", "pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0) rtable 7", []step{
			{"xdp lan", asked, by("rule", "lan")},
			{"tcx wan", "udp 198.51.100.9:53 > 203.0.113.2:$p", answered},
			{"xdp lan", "udp [fd00:1::10]:4000 > [64:ff9b::cb00:7101]:53", "forward rule wan udp 203.0.113.2:$q > 203.0.113.1:53 ttl 63"},
		}},
		{"rtable of a match rule", "match in inet6 rtable 7\npass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0)", []step{
			{"tcx lan", asked, by("rule", "lan")},
			{"xdp lan", asked, by("state", "lan")},
		}},
		{"an empty rtable", "match in inet6 rtable 7\npass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0) rtable 8", lost},
		{"route-to comes before rtable", to("(wan0 203.0.113.1)") + "\nmatch in rtable 7\n" + to("(wan0 203.0.113.1)"), []step{
			{"xdp lan", asked, by("rule", "wan")},
		}},
	})
}

// The states of af-to may be bound: to the interface where they are made, and to that by which
// the first packet leaves. No rule is evaluated there.
func TestFamiliesBound(t *testing.T) {
	t.Parallel()
	const (
		asked  = "udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53"
		answer = "udp 198.51.100.9:53 > 203.0.113.2:$p"
		goes   = "udp 203.0.113.2:$p > 198.51.100.9:53 ttl 63"
		comes  = "udp [64:ff9b::c633:6409]:53 > [fd00:1::10]:4000 ttl 63"
	)
	h := newHarness(t, boundRule+familyRule+"pass", func(c *Config) { c.Room = 100 })
	h.plays([]play{
		{"replies", "set state-policy if-bound\nblock\npass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0)", []step{
			{"xdp lan", asked, "forward rule wan " + goes},
			{"xdp wan", answer, "forward state lan " + comes},
			{"xdp lan", answer, "drop block"},
			{"tcx lan", answer, "drop block"},
			{"tcx wan", answer, "forward state lan " + comes},
			{"xdp wan", asked, "drop block"},
			{"tcx lan", asked, "forward state wan " + goes},
			{"xdp lan", "icmp 198.51.100.1 > 203.0.113.2 type 11 quote udp 203.0.113.2:$p > 198.51.100.9:53 ttl 1", "drop block"},
		}},
		{"a client that moves", "block\npass in inet6 to 64:ff9b::/96 keep state (if-bound) af-to inet from (wan0)", []step{
			{"tcx lan", asked, "forward rule wan " + goes},
			{"xdp wan", asked, "forward state wan " + goes},
			{"tcx wan", asked, "forward state wan " + goes},
			{"xdp wan", answer, "forward state lan " + comes},
			{"states", "", "17 fd00:1::10:4000 > 64:ff9b::c633:6409:53 as 203.0.113.2:$p > 198.51.100.9:53 udp.single 2:1 3/1"},
		}},
		{"rules that translate it in another way", "block\npass in on lan0 inet6 to 64:ff9b::/96 keep state (if-bound) af-to inet from (wan0)\n" +
			"pass in on wan0 inet6 to 64:ff9b::/96 af-to inet from 203.0.113.64", []step{
			{"xdp lan", asked, "forward rule wan " + goes},
			{"xdp wan", asked, "drop af-to"},
			{"tcx wan", asked, "drop af-to"},
			{"xdp lan", asked, "forward state wan " + goes},
		}},
		{"a connection that is over", "block\npass in inet6 to 64:ff9b::/96 keep state (if-bound) af-to inet from (wan0)", []step{
			{"xdp lan", "tcp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:80 S seq 5", "forward rule wan tcp 203.0.113.2:$p > 198.51.100.9:80 S seq 5 ttl 63"},
			{"xdp wan", "tcp 198.51.100.9:80 > 203.0.113.2:$p RA seq 9 ack 6", "forward state lan tcp [64:ff9b::c633:6409]:80 > [fd00:1::10]:4000 RA seq 9 ack 6 ttl 63"},
			{"xdp wan", "tcp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:80 S seq 900000", "forward rule wan tcp 203.0.113.2:$q > 198.51.100.9:80 S seq 900000 ttl 63"},
		}},
		{"floating", "block\npass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0)", []step{
			{"xdp lan", asked, "forward rule wan " + goes},
			{"xdp lan", answer, "forward state lan " + comes},
		}},
	})
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
