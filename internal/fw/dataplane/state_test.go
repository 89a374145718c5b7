package dataplane

import (
	"fmt"
	"testing"

	"weir/internal/fw/state"
)

// Where unusual packets of a connection go.
func testUp(h *harness) {
	h.plays([]play{
		{"to the box", "pass", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 192.168.1.1:53", "up local done"},
			{"tcx lan", "udp 192.168.1.10:2 > 192.168.1.1:53", "up local"},
			{"states", "", "17 192.168.1.10:1 > 192.168.1.1:53 udp.first 1:0 1/0; 17 192.168.1.10:2 > 192.168.1.1:53 udp.first 1:0 1/0"},
			{"out lan", "udp 192.168.1.1:53 > 192.168.1.10:1", "up state"},
		}},
		{"to the box, blocked", "block in\npass out", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 192.168.1.1:53", "drop block"},
		}},
		{"ttl", masquerade + "pass", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 ttl 1", "up up-ttl came"},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 ttl 2", "forward state wan udp 203.0.113.2:$p > 198.51.100.9:53 ttl 1"},
			{"tcx lan", "udp 192.168.1.10:1 > 198.51.100.9:53 ttl 0", "up up-ttl came"},
			{"xdp lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53 ttl 1", "up up-ttl came"},
		}},
		{"ttl of what is blocked", "block", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 ttl 1", "drop block"},
		}},
		{"length", masquerade + "pass", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 len 1472", "forward rule wan udp 203.0.113.2:$p > 198.51.100.9:53 len 1472 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 len 1473", "up up-mtu came"},
			{"tcx lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53 len 1453", "up up-mtu came"},
		}},
		{"what goes up has its destination translated", rdr + "pass", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:8080 S ttl 1", "up up-ttl leaves tcp 198.51.100.9:4000 > 192.168.1.10:80 S ttl 1"},
		}},
		{"the stack's part of a translated packet", masquerade + "pass", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 len 1473", "up up-mtu came"},
			{"out wan came", "udp 192.168.1.10:1 > 198.51.100.9:53 len 30 ttl 63", "up marked leaves udp 203.0.113.2:$p > 198.51.100.9:53 len 30 ttl 63"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:$p", "forward state lan udp 198.51.100.9:53 > 192.168.1.10:1 ttl 63"},
		}},
		{"multicast that the stack routes", masquerade + "pass\nblock out on wan0 to 239.9.9.9", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 239.1.2.3:9", "up up-multicast record0"},
			{"tcx lan", "udp 192.168.1.10:1 > 239.1.2.3:9", "up local record0"},
			{"out wan record0", "udp 192.168.1.10:1 > 239.1.2.3:9 ttl 63", "up rule udp 203.0.113.2:$p > 239.1.2.3:9 ttl 63"},
			{"out lan record0", "udp 192.168.1.10:1 > 239.1.2.3:9 ttl 63", "up rule"}, // each way out has its own
			{"out wan record0", "udp 192.168.1.10:1 > 239.1.2.3:9 ttl 63", "up state udp 203.0.113.2:$p > 239.1.2.3:9 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:1 > 239.9.9.9:9", "up up-multicast record0"},
			{"out wan record0", "udp 192.168.1.10:1 > 239.9.9.9:9 ttl 63", "drop block"},
			{"xdp lan", "udp [fe80::10]:1 > [ff0e::7]:9", "up up-multicast done"}, // whose source is local to the link
			{"xdp lan", "udp 192.168.1.10:1 > 255.255.255.255:9", "up up-multicast done"},
		}},
		{"link-local addresses are the interface's own", "pass", []step{
			{"xdp lan", "udp [fe80::10]:1 > [fe80::1]:53", "up local done"},
			{"tcx wan", "udp [fe80::10]:1 > [fe80::1]:53", "up local"},
			{"states", "", "17 fe80::10:1 > fe80::1:53 udp.first 1:0 1/0; 17 fe80::10:1 > fe80::1:53 udp.first 1:0 1/0"},
			{"out lan", "udp [fe80::1]:53 > [fe80::10]:1", "up state"},
		}},
		{"no neighbour", "pass", []step{
			{"xdp wan", "udp 198.51.100.9:53 > 192.168.1.77:1", "up up-neighbour came"},
		}},
		{"options", "pass", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 opts 4", "drop ip-option"},
			{"xdp lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53 ext hop", "drop ip-option"},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 opts 4", "drop ip-option"},
		}},
		{"allowed options", "pass allow-opts", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 opts 4", "up up-options came"},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 opts 8", "up up-options came"},
		}},
		{"options without any rule", "match in on wan0 tag x", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 opts 4", "drop ip-option"},
		}},
		{"what was decided at its ingress", "block\npass in on wan0 no state\npass out on lan0 no state", []step{
			{"xdp wan", "udp 198.51.100.9:53 > 192.168.1.77:1", "up up-neighbour record0"},
			{"out lan record0", "udp 198.51.100.9:53 > 192.168.1.77:1", "up marked record0"},
			{"out lan record0", "udp 198.51.100.9:53 > 192.168.1.77:2", "drop guard"},
			{"out lan record1", "udp 198.51.100.9:53 > 192.168.1.77:1", "drop guard"},
			{"out lan came", "udp 198.51.100.9:53 > 192.168.1.77:1", "drop guard"},
			{"out lan", "udp 192.168.1.1:53 > 192.168.1.77:1", "up rule"},
			{"wait", "11", ""},
			{"out lan record0", "udp 198.51.100.9:53 > 192.168.1.77:1", "drop guard"},
		}},
		{"others' bits of the mark", "pass\npass in on wan0 no state", []step{
			{"out wan came+0x40000", "udp 203.0.113.2:1 > 198.51.100.9:53", "drop guard"}, // forwarded, but not by weir
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 ttl 1", "up up-ttl came"},
			{"out wan came+0x40000", "udp 192.168.1.10:1 > 198.51.100.9:53", "up marked leaves+0x40000"},
		}},
		// 203.0.113.8 and .9 lead to one server: the stack sees one tuple
		{"two destinations of one server", twoDestinations, []step{
			{"xdp lan", "udp 192.168.1.10:1 > 203.0.113.8:80", "up up-neighbour record0 udp 192.168.1.10:1 > 192.168.1.20:80"},
			{"xdp lan", "udp 192.168.1.10:1 > 203.0.113.9:80", "up up-neighbour record1 udp 192.168.1.10:1 > 192.168.1.20:80"},
			{"states", "", "17 192.168.1.10:1 > 203.0.113.8:80 as 192.168.1.1:$a > 192.168.1.20:80 udp.first 1:0 1/0; 17 192.168.1.10:1 > 203.0.113.9:80 as 192.168.1.1:$b > 192.168.1.20:80 udp.first 1:0 1/0"},
			{"xdp lan", "udp 192.168.1.10:1 > 203.0.113.8:80", "up up-neighbour record0 udp 192.168.1.10:1 > 192.168.1.20:80"},
			{"out lan record1", "udp 192.168.1.10:1 > 192.168.1.20:80", "up marked leaves udp 192.168.1.1:$b > 192.168.1.20:80"},
			{"out lan record0", "udp 192.168.1.10:1 > 192.168.1.20:80", "up marked leaves udp 192.168.1.1:$a > 192.168.1.20:80"},
			{"wait", "11", ""}, // the records have had their time, the connections not
			{"xdp lan", "udp 192.168.1.10:1 > 203.0.113.9:80", "up up-neighbour record0 udp 192.168.1.10:1 > 192.168.1.20:80"},
			{"out lan record0", "udp 192.168.1.10:1 > 192.168.1.20:80", "up marked leaves udp 192.168.1.1:$b > 192.168.1.20:80"},
			{"out lan record1", "udp 192.168.1.10:1 > 192.168.1.20:80", "drop guard"},
		}},
		{"more destinations of one server than marks", twoDestinations, []step{
			{"xdp lan", "udp 192.168.1.10:1 > 203.0.113.11:80", "up up-neighbour record0 udp 192.168.1.10:1 > 192.168.1.20:80"},
			{"xdp lan", "udp 192.168.1.10:1 > 203.0.113.12:80", "up up-neighbour record1 udp 192.168.1.10:1 > 192.168.1.20:80"},
			{"xdp lan", "udp 192.168.1.10:1 > 203.0.113.13:80", "up up-neighbour record2 udp 192.168.1.10:1 > 192.168.1.20:80"},
			{"xdp lan", "udp 192.168.1.10:1 > 203.0.113.14:80", "up up-neighbour record3 udp 192.168.1.10:1 > 192.168.1.20:80"},
			{"xdp lan", "udp 192.168.1.10:1 > 203.0.113.16:80", "drop mark-taken"},
			{"xdp lan", "udp 192.168.1.10:2 > 203.0.113.16:80", "up up-neighbour record0 udp 192.168.1.10:2 > 192.168.1.20:80"},
			{"wait", "11", ""},
			{"xdp lan", "udp 192.168.1.10:1 > 203.0.113.16:80", "up up-neighbour record0 udp 192.168.1.10:1 > 192.168.1.20:80"},
		}},
		{"fragments in the stack", "match out on wan0 inet nat-to 203.0.113.2\npass", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 frag 0+ id 7 len 24 ttl 2", "forward rule wan udp 203.0.113.2:$p > 198.51.100.9:53 frag 0+ id 7 len 24 ttl 1"},
			{"xdp lan", "udp 192.168.1.10 > 198.51.100.9 frag 32 id 7 len 24 ttl 1", "up up-ttl record0"},
			{"out wan record0", "udp 192.168.1.10 > 198.51.100.9 frag 32 id 7 len 24", "up marked leaves udp 203.0.113.2 > 198.51.100.9 frag 32 id 7 len 24"},
			{"out wan record0", "udp 192.168.1.10 > 198.51.100.9 frag 32 id 8 len 24", "drop guard"},
			// what conntrack has put together is cut again, with a first one's mark and maybe another id
			{"out wan came", "udp 192.168.1.10:1 > 198.51.100.9:53 frag 0+ id 9 len 24", "up marked leaves udp 203.0.113.2:$p > 198.51.100.9:53 frag 0+ id 9 len 24"},
			{"out wan came", "udp 192.168.1.10 > 198.51.100.9 frag 32 id 9 len 24", "up marked leaves udp 203.0.113.2 > 198.51.100.9 frag 32 id 9 len 24"},
		}},
	})
}

// Packets that pass before the rules.
func testImplicit(h *harness) {
	t := h.tb
	h.load("block")
	dynamic := InterfacePresent | InterfaceTarget
	for _, test := range []struct{ at, packet, want string }{
		{"in", "icmp6 fe80::1 > ff02::1 type 134 len 8 ttl 255", "up implicit"},
		{"in", "icmp6 fe80::1 > fe80::2 type 136 len 16 ttl 255", "up implicit"},
		{"in", "icmp6 fe80::1 > fe80::2 type 136 len 16 ttl 254", "drop block"},
		{"in", "icmp6 fe80::1 > fe80::2 type 136 code 1 len 16 ttl 255", "drop block"},
		{"in", "icmp6 fe80::1 > ff02::16 type 143 len 20 ttl 1", "up implicit"},
		{"in", "icmp6 fe80::1 > ff02::16 type 143 len 20 ttl 1 ext hop", "up implicit"},
		{"in", "icmp6 2001:db8:9::1 > ff02::16 type 143 len 20 ttl 1", "drop block"},
		{"in", "icmp6 fe80::1 > ff02::1 type 130 len 16 ttl 2", "drop block"},
		{"in", "2 192.168.1.10 > 224.0.0.1 ttl 1 len 8", "up implicit"},
		{"in", "2 192.168.1.10 > 224.0.0.1 ttl 1 len 8 opts 4", "up implicit"},
		{"in", "2 0.0.0.0 > 224.0.0.1 ttl 1 len 8", "up implicit"},
		{"in", "2 192.168.1.10 > 224.0.0.1 ttl 2 len 8", "drop block"},
		{"static", "udp 192.168.1.10:67 > 255.255.255.255:68 len 240", "drop block"},
		{"static", "udp [fe80::1]:547 > [fe80::2]:546 len 30", "drop block"},
		{"in", "udp 192.168.1.10:67 > 255.255.255.255:68 len 240", "up implicit"},
		{"in", "udp 192.168.1.10:68 > 255.255.255.255:67 len 240", "drop block"},
		{"out", "udp 0.0.0.0:68 > 255.255.255.255:67 len 240", "up implicit"},
		{"out", "udp 0.0.0.0:67 > 255.255.255.255:68 len 240", "drop block"},
		{"in", "udp [fe80::1]:547 > [fe80::2]:546 len 30", "up implicit"},
		{"in", "udp [2001:db8:9::1]:547 > [fe80::2]:546 len 30", "drop block"},
		{"out", "udp [fe80::2]:546 > [ff02::1:2]:547 len 30", "up implicit"},
		{"out", "icmp6 fe80::2 > ff02::1:ff00:1 type 135 len 16 ttl 255", "up implicit"},
		{"static", "udp 192.168.1.10:67 > 255.255.255.255:68 len 240", "up implicit"}, // it was asked for
		{"static", "udp [fe80::1]:547 > [fe80::2]:546 len 30", "up implicit"},
		{"later", "udp 192.168.1.10:67 > 255.255.255.255:68 len 240", "drop block"},
		{"later", "udp [fe80::1]:547 > [fe80::2]:546 len 30", "drop block"},
		{"out", "udp 192.168.1.1:68 > 192.168.1.10:67 len 240", "up implicit"},
		{"in", "udp 192.168.1.10:67 > 192.168.1.1:68 len 240", "up implicit"},
	} {
		if test.at == "later" {
			h.advance(64)
			test.at = "static"
		}
		h.setInterface(h.net.lan0, dynamic, lan0MAC)
		if test.at == "static" {
			h.setInterface(h.net.lan0, dynamic|InterfaceStatic4|InterfaceStatic6, lan0MAC)
		}
		hooks := map[string]func(int, []byte) result{"xdp": h.xdp, "tcx": h.tcIn}
		if test.at == "out" {
			hooks = map[string]func(int, []byte) result{"out": func(i int, b []byte) result { return h.tcOut(i, b, 0) }}
		}
		for name, hook := range hooks {
			frame := parsePkt(test.packet).frame(lanHostMAC, lan0MAC)
			if test.at == "out" {
				frame = parsePkt(test.packet).frame(lan0MAC, lanHostMAC)
			}
			r := hook(h.net.lan0, frame)
			if got := string(r.verdict) + " " + r.reason; got != test.want {
				t.Errorf("%s at %s: got %s, want %s", test.packet, name, got, test.want)
			}
		}
	}
}

// Unusual load-time settings: only the built-in rules, which reject nothing; no implicit
// passes; three states.
func TestSettings(t *testing.T) {
	h := newHarness(t, "set implicit-pass no\nset limit states 3\nblock return\npass in proto tcp to port 22\npass in on lan0 proto udp\npass out on wan0",
		func(c *Config) { c.Unloaded = true })
	for _, test := range []struct{ packet, want string }{
		{"icmp6 fe80::1 > ff02::1 type 134 len 8 ttl 255", "drop unloaded"},
		{"2 192.168.1.10 > 224.0.0.1 ttl 1 len 8", "drop unloaded"},
		{"icmp 192.168.1.10 > 198.51.100.9 type 8", "drop unloaded"},
		{"tcp 192.168.1.10:1 > 192.168.1.1:22 S", "up local"},
		{"udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule"},
		{"udp 192.168.1.10:2 > 198.51.100.9:53", "forward rule"},
		{"udp 192.168.1.10:3 > 198.51.100.9:53", "drop state-limit"},
		{"udp 192.168.1.10:2 > 198.51.100.9:53", "forward state"},
	} {
		r := h.in(h.xdp, "lan", test.packet)
		if got := fmt.Sprintf("%s %s", r.verdict, r.reason); got != test.want {
			t.Errorf("%s: got %s, want %s", test.packet, got, test.want)
		}
	}
	_, frame := h.arrive("lan", "udp 192.168.1.10:1 > 198.51.100.9:53")
	if r := h.xdp(h.net.lan0, ethertype(0x0806)(frame)); r.verdict != up || r.reason != "implicit" {
		t.Errorf("ARP: %s %s", r.verdict, r.reason)
	}
	if n := h.dp.View().KillStates(func(s *state.State) bool { return s.Tuple[0].SPort == 2 }); n != 1 {
		t.Errorf("killed %d states, want 1", n)
	}
	if r := h.in(h.xdp, "wan", "udp 198.51.100.9:53 > 192.168.1.10:2"); r.reason != "unloaded" {
		t.Errorf("a packet of a killed state: %s %s", r.verdict, r.reason)
	}
}

// An interface under set skip is not filtered. The interface on the other side still is.
func testSkip(h *harness) {
	t := h.tb
	h.load("block\npass out on wan0")
	h.setInterface(h.net.lan0, InterfacePresent|InterfaceTarget|InterfaceSkip, lan0MAC)
	for _, test := range []struct{ from, packet, want string }{
		{"lan", "udp 192.168.1.10:1 > 192.168.1.1:53", "up local"},
		{"lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule"},
		{"wan", "udp 198.51.100.9:53 > 192.168.1.10:1", "forward state"},
		{"wan", "udp 198.51.100.9:54 > 192.168.1.10:1", "drop block"},
	} {
		r := h.in(h.xdp, test.from, test.packet)
		if got := fmt.Sprintf("%s %s", r.verdict, r.reason); got != test.want {
			t.Errorf("%s: got %s, want %s", test.packet, got, test.want)
		}
	}
}

// States end.
func testStateLife(h *harness) {
	const forth, back = "udp 192.168.1.10:1 > 198.51.100.9:53", "udp 198.51.100.9:53 > 192.168.1.10:1"
	const passed = " wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"
	const rules = "block\npass in on lan0\npass out on wan0"
	const returned = "forward state lan udp 198.51.100.9:53 > 192.168.1.10:1 ttl 63"
	h.plays([]play{
		{"udp.first is 60 s", rules, []step{
			{"xdp lan", forth, "forward rule" + passed},
			{"wait", "59.99", ""},
			{"xdp wan", back, returned},
		}},
		{"udp.first has gone", rules, []step{
			{"xdp lan", forth, "forward rule" + passed},
			{"wait", "60", ""},
			{"xdp wan", back, "drop block"},
		}},
		{"an expired state is replaced", masquerade + rules, []step{
			{"xdp lan", forth, "forward rule wan udp 203.0.113.2:$p > 198.51.100.9:53 ttl 63"},
			{"wait", "60", ""},
			{"xdp lan", forth, "forward rule wan udp 203.0.113.2:$q > 198.51.100.9:53 ttl 63"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:$q", returned},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:$p", "drop block"},
		}},
		{"udp.single is 30 s", rules, []step{
			{"xdp lan", forth, "forward rule" + passed},
			{"xdp wan", back, returned},
			{"wait", "30", ""},
			{"xdp wan", back, "drop block"},
		}},
		{"udp.multiple is 60 s since either's last", rules, []step{
			{"xdp lan", forth, "forward rule" + passed},
			{"xdp wan", back, returned},
			{"xdp lan", forth, "forward state" + passed},
			{"wait", "59", ""},
			{"xdp wan", back, returned},
			{"wait", "59", ""},
			{"xdp lan", forth, "forward state" + passed},
			{"wait", "60", ""},
			{"xdp wan", back, "drop block"},
		}},
		{"icmp.first is 20 s, icmp.error 10 s", rules, []step{
			{"xdp lan", "icmp 192.168.1.10 > 198.51.100.9 type 8 id 3", "forward rule wan icmp 192.168.1.10 > 198.51.100.9 type 8 id 3 ttl 63"},
			{"wait", "19", ""},
			{"xdp wan", "icmp 198.51.100.9 > 192.168.1.10 id 3", "forward state lan icmp 198.51.100.9 > 192.168.1.10 id 3 ttl 63"},
			{"states", "", "1 192.168.1.10:3 > 198.51.100.9:8 icmp.error $a:$b 1/1"},
			{"wait", "10", ""},
			{"xdp wan", "icmp 198.51.100.9 > 192.168.1.10 id 3", "drop block"},
		}},
		{"other.first is 60 s", rules, []step{
			{"xdp lan", "47 192.168.1.10 > 198.51.100.9 len 4", "forward rule wan 47 192.168.1.10 > 198.51.100.9 len 4 ttl 63"},
			{"wait", "60", ""},
			{"xdp wan", "47 198.51.100.9 > 192.168.1.10 len 4", "drop block"},
		}},
		{"tcp.first is 120 s", rules, []step{
			{"xdp lan", "tcp 192.168.1.10:1 > 198.51.100.9:80 S", "forward rule wan tcp 192.168.1.10:1 > 198.51.100.9:80 S ttl 63"},
			{"wait", "120", ""},
			{"xdp wan", "tcp 198.51.100.9:80 > 192.168.1.10:1 SA ack 1", "drop block"},
		}},
	})
}

// twoDestinations has all addresses of a network lead to one server.
const twoDestinations = "match in on lan0 inet to 203.0.113.0/24 rdr-to 192.168.1.20\nmatch out on lan0 inet to 192.168.1.20 nat-to 192.168.1.1\npass"
