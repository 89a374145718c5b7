package dataplane

import (
	"fmt"
	"net/netip"

	"weir/internal/fw/bpfload"
	"weir/internal/oracle/model"
)

// resetRejects resets the counters of rejects.
func (h *harness) resetRejects() {
	h.tb.Helper()
	cpus := must(bpfload.CPUs())(h.tb)
	m := h.dp.objects.Maps["rejects"]
	empty := make([][]byte, cpus)
	for i := range empty {
		empty[i] = make([]byte, m.ValueSize())
	}
	check(h.tb, m.Put(uint32(0), empty))
	none := must(newPerCPU[xdpCounter]())(h.tb)
	for i := range rejectedCount {
		check(h.tb, h.dp.tables.maps[mapRejectCounters].Put(uint32(i), none))
	}
}

// differRejects compares how many rejects were sent, and were not.
func (t *twin) differRejects() string {
	t.tb.Helper()
	a := must(t.dp.View().Rejects())(t.tb)
	got := model.Rejects{RST: a.RST.Packets, ICMP: a.ICMP.Packets, Limit: a.Limited.Packets, Not: a.Failed.Packets}
	if want := t.model.Rejects(); want != got {
		return fmt.Sprintf("rejects, model: %+v, dataplane: %+v", want, got)
	}
	return ""
}

// blocking rules reject in every possible way.
const refusing = `
block return
block return-rst (ttl 9) in proto tcp to port 81
block return-icmp (host-unr, addr-unr) in proto { tcp, udp } to port 82
block drop in proto { tcp, udp } to port 83
`

// What senders of blocked packets receive.
func testRejects(h *harness) {
	h.resetRejects()
	h.plays([]play{
		{"resets", refusing, []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 7", "forward block lan tcp 198.51.100.9:80 > 192.168.1.10:4000 RA ack 8 win 0"},
			{"tcx lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 4294967295 len 10", "forward block lan tcp 198.51.100.9:80 > 192.168.1.10:4000 RA ack 10 win 0"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 SF seq 7 len 2", "forward block lan tcp 198.51.100.9:80 > 192.168.1.10:4000 RA ack 10 win 0"},
			{"xdp wan", "tcp 198.51.100.9:80 > 192.168.1.10:4000 A seq 7 ack 99 len 10", "forward block wan tcp 192.168.1.10:4000 > 198.51.100.9:80 R seq 99 win 0"},
			{"tcx lan", "tcp [fd00:1::10]:4000 > [2001:db8:9::1]:81 S seq 7", "forward block lan tcp [2001:db8:9::1]:81 > [fd00:1::10]:4000 RA ack 8 win 0 ttl 9"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 R seq 7", "drop block"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 RA seq 7 ack 1", "drop block"},
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:80", "forward block lan icmp 192.168.1.1 > 192.168.1.10 type 3 code 3 quote udp 192.168.1.10:4000 > 198.51.100.9:80"},
			{"xdp lan", "icmp 192.168.1.10 > 198.51.100.9 type 8 id 3", "forward block lan icmp 192.168.1.1 > 192.168.1.10 type 3 code 3 quote icmp 192.168.1.10 > 198.51.100.9 type 8 id 3"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:82 R seq 7", "forward block lan icmp 192.168.1.1 > 192.168.1.10 type 3 code 1 quote tcp 192.168.1.10:4000 > 198.51.100.9:82 R seq 7"},
			{"out wan", "tcp 203.0.113.2:4000 > 198.51.100.9:80 S seq 7", "forward block tcp 198.51.100.9:80 > 203.0.113.2:4000 RA ack 8 win 0"},
			{"out wan", "udp [2001:db8:113::2]:4000 > [2001:db8:9::1]:80", "forward block icmp6 2001:db8:9::1 > 2001:db8:113::2 type 1 code 4 quote udp [2001:db8:113::2]:4000 > [2001:db8:9::1]:80"},
			{"xdp lan", "udp 192.168.1.10:4000 > 192.168.1.1:80", "forward block lan icmp 192.168.1.1 > 192.168.1.10 type 3 code 3 quote udp 192.168.1.10:4000 > 192.168.1.1:80"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 7 frag 0+ id 9 len 12", "forward block lan tcp 198.51.100.9:80 > 192.168.1.10:4000 RA ack 20 win 0"},
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:80 opts 8", "forward block lan icmp 192.168.1.1 > 192.168.1.10 type 3 code 3 quote udp 192.168.1.10:4000 > 198.51.100.9:80 opts 8"},
			{"xdp lan", "udp 192.168.1.10:4000 > 192.168.1.255:80", "drop block"},
			{"xdp lan", "icmp 192.168.1.10 > 198.51.100.9 type 3 code 3 quote udp 198.51.100.9:5 > 192.168.1.10:9", "drop block"},
			{"xdp lan", "icmp6 fd00:1::10 > 2001:db8:9::1 type 137", "drop block"},
			{"xdp lan", "icmp6 fd00:1::10 > 2001:db8:9::1 type 200", "forward block lan icmp6 fd00:1::1 > fd00:1::10 type 1 code 4 quote icmp6 fd00:1::10 > 2001:db8:9::1 type 200"},
		}},
		// pass out keeps the state, block in is evaluated for each packet
		{"in a state", "pass in no state\npass out\nblock return in on lan0 proto tcp flags A/SA", []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 7", "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 7 ttl 63"},
			{"tcx wan", "tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 9 ack 8", "forward state lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 9 ack 8 ttl 63"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 8 ack 10", "forward block lan tcp 198.51.100.9:80 > 192.168.1.10:4000 R seq 10 win 0"},
			{"tcx lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 8 ack 10", "forward block lan tcp 198.51.100.9:80 > 192.168.1.10:4000 R seq 10 win 0"},
		}},
		{"no state left", "set fail-policy return\npass in\npass in proto { tcp, udp } to port 80 keep state (max 1)\npass out no state", []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 7", "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 7 ttl 63"},
			{"xdp lan", "tcp 192.168.1.10:4001 > 198.51.100.9:80 S seq 7", "forward max-states lan tcp 198.51.100.9:80 > 192.168.1.10:4001 RA ack 8 win 0"},
			{"tcx lan", "udp 192.168.1.10:4000 > 192.168.1.1:80", "up local"},
			{"tcx lan", "udp 192.168.1.10:4001 > 192.168.1.1:80", "forward max-states lan icmp 192.168.1.1 > 192.168.1.10 type 3 code 3 quote udp 192.168.1.10:4001 > 192.168.1.1:80"},
		}},
		{"no state left, and nothing is said", "set fail-policy return\nset fail-policy drop\npass in proto tcp to port 80 keep state (max 1)\npass out no state", []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 7", "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 7 ttl 63"},
			{"xdp lan", "tcp 192.168.1.10:4001 > 198.51.100.9:80 S seq 7", "drop max-states"},
		}},
		{"before translation", "match in rdr-to 192.168.1.10 port 8080\nmatch out nat-to (wan0)\npass\nblock return out proto { tcp, udp } to port 8080", []step{
			{"xdp wan", "udp 198.51.100.9:9 > 203.0.113.2:80", "forward block wan icmp 203.0.113.2 > 198.51.100.9 type 3 code 3 quote udp 198.51.100.9:9 > 203.0.113.2:80"},
			{"xdp wan", "tcp 198.51.100.9:9 > 203.0.113.2:80 S seq 3", "forward block wan tcp 203.0.113.2:80 > 198.51.100.9:9 RA ack 4 win 0"},
		}},
	})
	h.sub("frames", testRejectFrames)
	h.sub("rate", testRejectRate)
	h.sub("sources", testRejectSources)
}

// Frames to or from a group of stations are not rejected. Short rejects are padded.
func testRejectFrames(h *harness) {
	t := h.tb
	h.load("block return")
	packet := parsePkt("udp 192.168.1.10:4000 > 198.51.100.9:80")
	const group = "03:00:00:00:00:01"
	for _, macs := range [][2]string{{group, lan0MAC}, {lanHostMAC, group}, {lanHostMAC, "ff:ff:ff:ff:ff:ff"}} {
		for _, hook := range []func(int, []byte) result{h.xdp, h.tcIn} {
			if r := hook(h.net.lan0, packet.frame(macs[0], macs[1])); r.verdict != drop || r.reason != "block" {
				t.Errorf("from %s to %s: %s %s", macs[0], macs[1], r.verdict, r.reason)
			}
		}
	}
	reset := parsePkt("tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 7").frame(lanHostMAC, lan0MAC)
	if r := h.xdp(h.net.lan0, reset); len(r.frame) != 60 {
		t.Errorf("a reset's frame has %d bytes", len(r.frame))
	}
	// if XDP cannot redirect to the device, it sends back
	h.setInterface(h.net.lan0, InterfacePresent|InterfaceStatic4|InterfaceStatic6, lan0MAC)
	if r := h.xdp(h.net.lan0, reset); h.trunk == nil && r.verdict != rejected || r.reason != "block" {
		t.Errorf("from a device that is no target: %s %s", r.verdict, r.reason)
	}
	h.reset()
	h.load("block return")
	for text, want := range map[string]int{
		"udp 192.168.1.10:1 > 198.51.100.9:80 len 520": 576, "udp 192.168.1.10:1 > 198.51.100.9:80 len 521": 576,
		"udp 192.168.1.10:1 > 198.51.100.9:80 len 519": 575, "udp 192.168.1.10:1 > 198.51.100.9:80 len 1472": 576,
		"udp [fd00:1::10]:1 > [2001:db8:9::1]:80 len 1184": 1280, "udp [fd00:1::10]:1 > [2001:db8:9::1]:80 len 1452": 1280,
		"udp [fd00:1::10]:1 > [2001:db8:9::1]:80 len 1183": 1279,
	} {
		for _, hook := range []func(int, []byte) result{h.xdp, h.tcIn} {
			if r := h.in(hook, "lan", text); len(r.frame)-14 != want {
				t.Errorf("%s: a reject of %d bytes, want %d", text, len(r.frame)-14, want)
			}
		}
	}
}

// REJECT_RATE and REJECT_BURST limit the rejects of a core, for both kinds together.
func testRejectRate(h *harness) {
	t := h.tb
	h.load("block return")
	h.resetRejects()
	oneCPU(t, 0)
	rate, burst := define(t, header(t, "config.h"), "REJECT_RATE"), define(t, header(t, "config.h"), "REJECT_BURST")
	shoot := func(packets int) (given int) {
		for i := range packets {
			packet := "udp 192.168.1.10:4000 > 198.51.100.9:80"
			if i%2 == 0 {
				packet = "tcp 192.168.1.10:4000 > 198.51.100.9:80 S"
			}
			if r := h.in(h.xdp, "lan", packet); r.reason != "block" {
				t.Fatalf("%s: %s %s", packet, r.verdict, r.reason)
			} else if r.verdict != drop {
				given++
			}
		}
		return given
	}
	if given := shoot(burst + 50); given != burst {
		t.Errorf("%d rejects at once, want %d", given, burst)
	}
	h.advance(0.05)
	if given := shoot(rate); given != rate/20 {
		t.Errorf("%d rejects after 50 ms, want %d", given, rate/20)
	}
	h.advance(3600)
	if given := shoot(burst + 50); given != burst {
		t.Errorf("%d rejects after an hour, want %d", given, burst)
	}
	a := must(h.dp.View().Rejects())(t)
	if given, kept := a.RST.Packets+a.ICMP.Packets, uint64(100+rate-rate/20); given != uint64(2*burst+rate/20) || a.Limited.Packets != kept || a.Failed.Packets != 0 {
		t.Errorf("counted %+v", a)
	}
}

// An error comes from the interface's first address, or else the box's. Without an
// address there is no error.
func testRejectSources(h *harness) {
	t := h.tb
	h.resetRejects()
	h.load("block return")
	defer func() { check(t, h.dp.SetAddresses(h.net.addresses())) }()
	at := func(text string, ifindex int) Address { return Address{netip.MustParsePrefix(text), ifindex} }
	for _, test := range []struct {
		addresses []Address
		packet    string
		want      string // "": no reject
	}{
		{[]Address{at("192.168.1.1/24", h.net.lan0), at("192.168.1.2/24", h.net.lan0)}, "udp 192.168.1.10:1 > 198.51.100.9:80", "192.168.1.1"},
		{[]Address{at("203.0.113.2/24", h.net.wan0), at("fe80::1/64", h.net.lan0)}, "udp 192.168.1.10:1 > 198.51.100.9:80", "203.0.113.2"},
		{[]Address{at("127.0.0.1/8", 1), at("fd00:1::1/64", h.net.lan0)}, "udp 192.168.1.10:1 > 198.51.100.9:80", ""},
		{[]Address{at("fe80::1/64", h.net.lan0), at("fd00:1::1/64", h.net.lan0)}, "udp [fd00:1::10]:1 > [2001:db8:9::1]:80", "fd00:1::1"},
		{[]Address{at("fd00:1::1/64", h.net.lan0), at("fe80::1/64", h.net.lan0)}, "udp [fe80::10]:1 > [2001:db8:9::1]:80", "fe80::1"},
		{[]Address{at("fd00:1::1/64", h.net.lan0), at("fe80::1/64", h.net.wan0)}, "udp [fe80::10]:1 > [2001:db8:9::1]:80", ""},
		{[]Address{at("10.0.0.1/8", h.net.lan0)}, "udp 192.168.1.10:1 > 10.255.255.255:80", ""},
		{[]Address{at("10.0.0.1/31", h.net.lan0)}, "udp 10.0.0.0:1 > 10.255.255.255:80", "10.0.0.1"},
	} {
		check(t, h.dp.SetAddresses(test.addresses))
		r := h.in(h.xdp, "lan", test.packet)
		if test.want == "" {
			if r.verdict != drop || r.reason != "block" {
				t.Errorf("%v: %s was rejected: %s", test.addresses, test.packet, r.packet())
			}
			continue
		}
		if from := decodePkt(r.frame[14:]).src.Addr().String(); from != test.want {
			t.Errorf("%v: %s was rejected by %s, want %s", test.addresses, test.packet, from, test.want)
		}
	}
	if a := must(h.dp.View().Rejects())(t); a.Failed.Packets != 2 {
		t.Errorf("%d packets could not be rejected, want 2", a.Failed.Packets)
	}
}
