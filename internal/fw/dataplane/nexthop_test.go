package dataplane

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
)

// Next hops follow the kernel's routes and neighbours.
func testNextHops(h *harness) {
	const otherMAC = "02:77:65:00:01:99"
	t := h.tb
	h.load("pass")
	send := func(what, want, mac string) {
		t.Helper()
		r := h.in(h.xdp, "lan", "udp 192.168.1.10:1 > 198.51.100.9:53")
		if got := fmt.Sprintf("%s %s", r.verdict, r.reason); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
		if got := net.HardwareAddr(r.frame[:6]).String(); got != mac {
			t.Errorf("%s: goes to %s, want %s", what, got, mac)
		}
	}
	send("at first", "forward rule", wanHostMAC)
	addNeighbour(t, h.net.wan0, "203.0.113.1", otherMAC)
	send("the router has another MAC", "forward state", wanHostMAC)
	h.advance(1)
	send("a second later", "forward state", otherMAC)
	addNeighbour(t, h.net.wan0, "203.0.113.1", wanHostMAC)
	h.dp.BumpRoutes()
	send("routes have changed", "forward state", wanHostMAC)

	// Without the daemon, packets must show the kernel that the router is in use.
	now := &h.dp.tables.shared.Now
	*now += 400
	send("no daemon", "up up-probe", lan0MAC)
	send("no daemon, the next", "forward state", wanHostMAC)
	*now += 2999
	send("29.99 s later", "forward state", wanHostMAC)
	*now += 100 // next hops are checked once a second
	send("a second after 30 s", "up up-probe", lan0MAC)
	h.dp.Heartbeat()
	*now += 299
	send("the daemon was there 2.99 s ago", "forward state", wanHostMAC)
}

// Every possible checksum of a translation is right, including 0, which UDP writes as
// 0xffff.
func testChecksums(h *harness) {
	t := h.tb
	h.load("match out on wan0 inet nat-to (wan0) static-port\npass")
	for _, hook := range []struct {
		program string
		run     func(*bpfload.Program, bpfload.Run) (bpfload.Outcome, error)
	}{{"weir_xdp", bpfload.RunXDP}, {"weir_tc_in", bpfload.RunTC}} {
		p := parsePkt("udp 192.168.1.10:4000 > 198.51.100.9:53 len 2")
		for i := range 1 << 16 {
			frame := p.frame(lanHostMAC, lan0MAC)
			udp := frame[34:]
			udp[8], udp[9], udp[6], udp[7] = byte(i>>8), byte(i), 0, 0
			check := ^fold(sum(udp) + p.pseudo(len(udp)))
			if check == 0 {
				check = 0xffff
			}
			udp[6], udp[7] = byte(check>>8), byte(check)
			o := must(hook.run(h.program(hook.program), bpfload.Run{Frame: frame, Ifindex: h.net.lan0}))(t)
			if out := decodePkt(o.Frame[14:]); out.sums != "" || out.nosum || out.src.Addr() != netip.MustParseAddr("203.0.113.2") {
				t.Fatalf("%s, payload %#x: %s", hook.program, i, out)
			}
		}
	}
}

// A translation's addresses are used in turn, and can change while packets pass.
func testPools(h *harness) {
	t := h.tb
	source := func(port int) string {
		t.Helper()
		r := h.in(h.xdp, "lan", fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53", port))
		if r.verdict != redirect {
			t.Fatalf("port %d: %s %s", port, r.verdict, r.reason)
		}
		return decodePkt(r.frame[14:]).src.Addr().String()
	}
	h.load("match out on wan0 inet nat-to { 203.0.113.64/31, 203.0.113.77 }\npass")
	seen := make(map[string]int)
	for port := range 12 {
		seen[source(1+port)]++
	}
	for _, a := range []string{"203.0.113.64", "203.0.113.65", "203.0.113.77"} {
		if seen[a] != 4 {
			t.Errorf("%s was used %d times of 12, want 4; all: %v", a, seen[a], seen)
		}
	}

	h.load("match out on wan0 inet nat-to (wan0)\npass")
	p := must(ruleset.Compile(h.parse("match out on wan0 inet nat-to (wan0)\npass"), h.snapshot()))(t)
	if a := source(1); a != "203.0.113.2" {
		t.Errorf("at first: %s", a)
	}
	s := h.snapshot()
	s.Interfaces[2].Addresses = []ruleset.Address{{Prefix: netip.MustParsePrefix("203.0.113.5/24")}}
	check(t, h.dp.SetPools(must(p.Refill(s))(t)))
	if a := source(2); a != "203.0.113.5" {
		t.Errorf("after the address changed: %s", a)
	}
	if a := source(1); a != "203.0.113.2" {
		t.Errorf("the connection from before: %s", a)
	}
	s.Interfaces[2].Addresses = nil
	check(t, h.dp.SetPools(must(p.Refill(s))(t)))
	if r := h.in(h.xdp, "lan", "udp 192.168.1.10:3 > 198.51.100.9:53"); r.reason != "nat-address" {
		t.Errorf("no address left: %s %s", r.verdict, r.reason)
	}

	// an address that comes back was not kept for anybody meanwhile
	sticky := "match out on wan0 inet nat-to (wan0) sticky-address\npass"
	h.load(sticky)
	p = must(ruleset.Compile(h.parse(sticky), h.snapshot()))(t)
	change := func(first, second string) {
		s.Interfaces[2].Addresses = []ruleset.Address{{Prefix: netip.MustParsePrefix(first)}, {Prefix: netip.MustParsePrefix(second)}}
		check(t, h.dp.SetPools(must(p.Refill(s))(t)))
	}
	change("203.0.113.2/24", "203.0.113.3/24")
	kept := source(21)
	change("203.0.113.5/24", "203.0.113.6/24")
	change("203.0.113.7/24", "203.0.113.8/24")
	if a := source(22); a != "203.0.113.7" && a != "203.0.113.8" {
		t.Errorf("after its addresses changed twice, a sticky pool gives %s, and had given %s", a, kept)
	}
}

// Without the daemon nobody updates the pool of an interface whose address has changed.
// While the pool's address is not the box's, new connections get the address that the
// kernel sends from.
func testPoolWithoutDaemon(h *harness) {
	t := h.tb
	port := 0
	source := func(packet string) string {
		t.Helper()
		port++
		r := h.in(h.xdp, "lan", fmt.Sprintf(packet, port))
		if r.reason == "up-probe" { // once for each next hop
			port++
			r = h.in(h.xdp, "lan", fmt.Sprintf(packet, port))
		}
		if r.verdict != redirect {
			t.Fatalf("port %d: %s %s", port, r.verdict, r.reason)
		}
		return decodePkt(r.frame[14:]).src.Addr().String()
	}
	const packet4, packet6 = "udp 192.168.1.10:%d > 198.51.100.9:53", "udp [fd00:1::10]:%d > [2001:db8:7::7]:53"
	expect := func(what, want4, want6 string) {
		t.Helper()
		if got4, got6 := source(packet4), source(packet6); got4 != want4 || got6 != want6 {
			t.Errorf("%s: %s and %s, want %s and %s", what, got4, got6, want4, want6)
		}
	}
	setSysctl(t, "net/ipv4/conf/wan0/promote_secondaries", "1")
	h.load("match out on wan0 nat-to (wan0)\npass")
	addAddress(t, h.net.wan0, "203.0.113.5/24")
	addAddress(t, h.net.wan0, "2001:db8:113::5/64")
	h.dp.tables.shared.Now += 400
	expect("no daemon, the pool's addresses are there", "203.0.113.2", "2001:db8:113::2")
	dropAddress(t, h.net.wan0, "203.0.113.2/24")
	dropAddress(t, h.net.wan0, "2001:db8:113::2/64")
	expect("they are gone", "203.0.113.5", "2001:db8:113::5")
	own := h.tcOut(h.net.wan0, parsePkt("udp 203.0.113.5:9 > 198.51.100.9:53").frame(wan0MAC, wanHostMAC), 0)
	if a := decodePkt(own.frame[14:]).src.Addr().String(); a != "203.0.113.5" {
		t.Errorf("the box's own packet leaves from %s", a)
	}
	h.dp.Heartbeat()
	expect("the daemon has not entered it yet", "203.0.113.2", "2001:db8:113::2")
	addAddress(t, h.net.wan0, "203.0.113.2/24")
	addAddress(t, h.net.wan0, "2001:db8:113::2/64")
	dropAddress(t, h.net.wan0, "203.0.113.5/24")
	dropAddress(t, h.net.wan0, "2001:db8:113::5/64")
}

// The box's addresses are the last ones that were set.
func testAddresses(h *harness) {
	t := h.tb
	h.load("pass")
	send := func(want string) {
		t.Helper()
		if r := h.in(h.xdp, "lan", "udp 192.168.1.1:1 > 198.51.100.9:53"); r.reason != want {
			t.Errorf("got %s %s, want %s", r.verdict, r.reason, want)
		}
	}
	send("martian-source")
	addresses := h.net.addresses()
	addresses = slices.DeleteFunc(addresses, func(a Address) bool { return a.Addr() == netip.MustParseAddr("192.168.1.1") })
	check(t, h.dp.SetAddresses(addresses))
	send("rule")
	check(t, h.dp.SetAddresses(h.net.addresses()))
	h.forget()
	send("martian-source")
}
