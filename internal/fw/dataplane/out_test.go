package dataplane

import (
	"fmt"
	"net"
	"strings"

	"github.com/vishvananda/netlink"

	"weir/internal/fw/bpfload"
)

// Packets that leave by TCX egress.
func testOut(h *harness) {
	h.plays([]play{
		{"the box's own", "block\npass out on wan0", []step{
			{"out wan", "udp 203.0.113.2:5000 > 198.51.100.9:53", "up rule"},
			{"out wan", "udp 203.0.113.2:5000 > 198.51.100.9:53", "up state"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:5000", "up local done"},
			{"states", "", "17 203.0.113.2:5000 > 198.51.100.9:53 udp.single 2:1 2/1"},
			{"out lan", "udp 192.168.1.1:5000 > 192.168.1.10:53", "drop block"},
		}},
		{"translated", "match out on wan0 inet from 10.9.9.9 nat-to (wan0)\npass", []step{
			{"out wan", "udp 10.9.9.9:5000 > 198.51.100.9:53", "up rule udp 203.0.113.2:$p > 198.51.100.9:53"},
			{"tcx wan", "udp 198.51.100.9:53 > 203.0.113.2:$p", "up local udp 198.51.100.9:53 > 10.9.9.9:5000"},
		}},
		{"a port that a translation has taken", "match out on wan0 inet from 192.168.1.0/24 nat-to (wan0) static-port\npass", []step{
			{"xdp lan", "udp 192.168.1.10:5000 > 198.51.100.9:53", "forward rule wan udp 203.0.113.2:5000 > 198.51.100.9:53 ttl 63"},
			{"out wan", "udp 203.0.113.2:5000 > 198.51.100.9:53", "up rule udp 203.0.113.2:$p > 198.51.100.9:53"},
			{"tcx wan", "udp 198.51.100.9:53 > 203.0.113.2:$p", "up local udp 198.51.100.9:53 > 203.0.113.2:5000"},
			{"tcx wan", "udp 198.51.100.9:53 > 203.0.113.2:5000", "forward state lan udp 198.51.100.9:53 > 192.168.1.10:5000 ttl 63"},
		}},
		{"to another destination", "match out on wan0 inet proto udp to 198.51.100.9 port 53 rdr-to 192.168.1.10 port 5353\npass", []step{
			{"out wan", "udp 203.0.113.2:5000 > 198.51.100.9:53", "forward rule lan udp 203.0.113.2:5000 > 192.168.1.10:5353"},
			{"out wan", "udp 203.0.113.2:5000 > 198.51.100.9:53", "forward state lan udp 203.0.113.2:5000 > 192.168.1.10:5353"},
			{"tcx lan", "udp 192.168.1.10:5353 > 203.0.113.2:5000", "up local udp 198.51.100.9:53 > 203.0.113.2:5000"},
			{"states", "", "17 203.0.113.2:5000 > 198.51.100.9:53 as 203.0.113.2:5000 > 192.168.1.10:5353 udp.single 2:1 2/1"},
		}},
		{"to the box itself by rdr-to", "pass out inet proto udp to 198.51.100.9 rdr-to 192.168.1.1", []step{
			{"out wan", "udp 203.0.113.2:5000 > 198.51.100.9:53", "forward gateway icmp 198.51.100.9 > 203.0.113.2 type 3 code 1 quote udp 203.0.113.2:5000 > 198.51.100.9:53"},
		}},
		{"replies of the box", "block\npass in on lan0", []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 192.168.1.1:22 S seq 7", "up local done"},
			{"out lan", "tcp 192.168.1.1:22 > 192.168.1.10:4000 SA seq 9 ack 8", "up state"},
			{"out wan", "tcp 192.168.1.1:22 > 192.168.1.10:4000 SA seq 9 ack 8", "up state"},
			{"out lan", "tcp 192.168.1.1:22 > 192.168.1.10:4001 SA seq 9 ack 8", "drop block"},
		}},
		{"ping to the box", "block\npass in on lan0 inet proto icmp", []step{
			{"xdp lan", "icmp 192.168.1.10 > 192.168.1.1 type 8 id 3", "up local done"},
			{"out lan", "icmp 192.168.1.1 > 192.168.1.10 id 3", "up state"},
		}},
		{"no sanity here", "pass", []step{
			{"out wan", "udp 127.0.0.1:1 > 198.51.100.9:53", "up rule"},
		}},
		{"fragments of the box's own", "pass out", []step{
			{"out wan", "udp 203.0.113.2:5000 > 198.51.100.9:53 frag 0+ id 9 len 1472", "up rule"},
			{"out wan", "udp 203.0.113.2 > 198.51.100.9 frag 1480 id 9 len 20", "up state"},
			{"out wan", "udp 203.0.113.2 > 198.51.100.9 frag 1480 id 8 len 20", "drop fragment-orphan"},
		}},
	})
}

// A packet that the stack forwards without a hand-off has bypassed weir, whatever its
// mark.
func testGuard(h *harness) {
	const forwarded = "udp 192.168.1.10:1 > 198.51.100.9:53"
	t := h.tb
	h.load("block")
	for value := range uint32(8) { // programs can set any mark
		mark := weirs.Set(0x1234, value)
		own := parsePkt("udp 203.0.113.2:1 > 198.51.100.9:53").frame(wan0MAC, wanHostMAC)
		if r := h.tcFrom(h.net.wan0, own, mark, 0); r.reason != "block" {
			t.Errorf("the box's own with mark %#x: %s %s", mark, r.verdict, r.reason)
		}
		for _, packet := range []string{ // incoming packets may have a mark too
			"udp 192.168.1.10:1 > 192.168.1.1:53", "tcp 192.168.1.10:1 > 192.168.1.1:22 S",
			"tcp 192.168.1.10:1 > 192.168.1.1:22 RA seq 0 ack 12", "icmp 192.168.1.10 > 192.168.1.1 type 8 id 3",
		} {
			ifindex, frame := h.arrive("lan", packet)
			r := h.tc("weir_tc_in", bpfload.Run{Frame: frame, Ifindex: ifindex, From: ifindex, Mark: mark})
			if r.reason != "block" || r.mark != 0x1234 || r.verdict != drop {
				t.Errorf("%s with mark %#x: %s %q, mark %#x", packet, mark, r.verdict, r.reason, r.mark)
			}
		}
	}
	h.load("pass")
	for value := range uint32(8) {
		frame := parsePkt(forwarded).frame(wan0MAC, wanHostMAC)
		if r := h.tcFrom(h.net.wan0, frame, weirs.Set(0x1234, value), h.net.lan0); r.verdict != drop || r.reason != "guard" {
			t.Errorf("forwarded past weir, with the value %d in its mark: %s %s", value, r.verdict, r.reason)
		}
	}
}

// A note says that weir has redirected the packet to this interface. Nobody else can
// write one.
func testNotes(h *harness) {
	t := h.tb
	h.load("block")
	note := h.note(h.net.wan0)
	frame := parsePkt("udp 192.168.1.10:1 > 198.51.100.9:53").frame(wan0MAC, wanHostMAC)
	run := bpfload.Run{Frame: frame, Ifindex: h.net.wan0, From: h.net.lan0, Note: note}
	r := h.tc("weir_tc_out", run)
	if r.verdict != up || r.reason != "" || r.note == note {
		t.Errorf("redirected here: %s %q, and the note %x is not taken away", r.verdict, r.reason, r.note)
	}
	for what, wrong := range map[string][5]uint32{
		"none": {}, "another secret": {note[0], note[1] + 1, note[2]}, "to another device": {note[0], note[1], note[2] + 1},
	} {
		run.Note = wrong
		if r := h.tc("weir_tc_out", run); r.verdict != drop || r.reason != "guard" {
			t.Errorf("note: %s: %s %s", what, r.verdict, r.reason)
		}
		run := bpfload.Run{Frame: frame, Ifindex: h.net.wan0, From: h.net.wan0, Note: wrong}
		if r := h.tc("weir_tc_in", run); r.verdict == up && r.reason == "" {
			t.Errorf("note: %s: %s %s at ingress", what, r.verdict, r.reason)
		}
	}
	h.load("block return")
	ifindex, frame := h.arrive("lan", "tcp 192.168.1.10:1 > 192.168.1.1:22 S")
	if r := h.tcIn(ifindex, frame); r.verdict != redirect || r.note != h.note(ifindex) {
		t.Errorf("a reset: %s %s, note %x", r.verdict, r.reason, r.note)
	}
}

// Super-packets count with the length of their segments.
func testSegments(h *harness) {
	t := h.tb
	h.load("pass")
	ifindex, frame := h.arrive("lan", "tcp 192.168.1.10:1 > 198.51.100.9:80 A len 3000")
	for _, test := range []struct {
		gso  uint32
		want string
	}{{0, "up up-mtu"}, {1460, "forward no-rule"}, {1461, "up up-mtu"}} {
		r := h.tc("weir_tc_in", bpfload.Run{Frame: frame, Ifindex: ifindex, From: ifindex, GSO: test.gso})
		if got := fmt.Sprintf("%s %s", r.verdict, r.reason); got != test.want {
			t.Errorf("segments of %d bytes: got %s, want %s", test.gso, got, test.want)
		}
	}
}

// Frames that fill several buffers: the kernel's test run puts more than about 3500 bytes
// into further ones.
func testScattered(h *harness) {
	t := h.tb
	const packet = "udp 192.168.1.10:4000 > 198.51.100.9:53"
	setMTU := func(mtu int) {
		t.Helper()
		for _, device := range []string{"lan0", "wan0"} {
			check(t, netlink.LinkSetMTU(must(netlink.LinkByName(device))(t), mtu))
		}
		h.dp.BumpRoutes()
	}
	setMTU(9000) // under an XDP program that takes such frames
	t.Cleanup(func() { setMTU(1500) })
	send := func(size int, cut int, want string) {
		t.Helper()
		ifindex, frame := h.arrive("lan", fmt.Sprintf("%s len %d", packet, size))
		r := h.xdp(ifindex, frame[:len(frame)-cut])
		got := fmt.Sprintf("%s %s", r.verdict, r.reason)
		if r.verdict == redirect {
			got += " " + r.packet()
		}
		if got != want {
			t.Errorf("%d bytes of data, %d cut off: got %s, want %s", size, cut, got, want)
		}
	}
	h.load("pass")
	whole := "wan " + packet + " len %d ttl 63"
	send(8972, 0, "up up-device")
	h.setInterface(h.net.wan0, InterfacePresent|InterfaceTarget|InterfaceScattered, wan0MAC)
	h.advance(2)
	send(8972, 0, "forward state "+fmt.Sprintf(whole, 8972))
	send(4000, 0, "forward state "+fmt.Sprintf(whole, 4000))
	send(4000, 1, "drop malformed")
	send(8973, 0, "up up-mtu")
	h.load(masquerade + "pass")
	h.advance(2)
	ifindex, frame := h.arrive("lan", packet+" len 8972")
	out := h.xdp(ifindex, frame)
	if out.verdict != redirect || len(out.frame) != len(frame) || !strings.HasSuffix(out.packet(), " > 198.51.100.9:53 len 8972 ttl 63") {
		t.Errorf("translated: %s %s %s", out.verdict, out.reason, out.packet())
	}
	h.load("block return")
	h.resetRejects()
	ifindex, frame = h.arrive("lan", packet+" len 8972")
	if r := h.xdp(ifindex, frame); r.reason != "block" || len(r.frame) > 600 || !strings.HasPrefix(r.packet(), "lan icmp 192.168.1.1 > 192.168.1.10 type 3 code 3 ") {
		t.Errorf("rejected: %s %s %s", r.verdict, r.reason, r.packet())
	}
}

// Devices without an Ethernet header: it is removed and added.
func testLayer3(h *harness) {
	t := h.tb
	h.load(masquerade + "pass")
	h.setInterface(h.net.lan0, InterfacePresent|InterfaceL3, "")
	// BPF_PROG_TEST_RUN takes the EtherType from bytes that belong to the source
	// here. So the source begins with 8.0.
	_, host, _ := net.ParseCIDR("8.0.0.10/32")
	check(t, netlink.RouteAdd(&netlink.Route{LinkIndex: h.net.lan0, Dst: host, Scope: netlink.SCOPE_LINK}))
	packet := parsePkt("udp 8.0.0.10:1 > 198.51.100.9:53 len 30")
	r := h.tcIn(h.net.lan0, packet.encode())
	if r.verdict != redirect || r.reason != "rule" {
		t.Fatalf("from a device without: %s %s", r.verdict, r.reason)
	}
	forth := decodePkt(r.frame[14:])
	if text := r.packet(); text != fmt.Sprintf("wan udp 203.0.113.2:%d > 198.51.100.9:53 len 30 ttl 63", forth.src.Port()) {
		t.Errorf("from a device without: %s", text)
	}
	answer := fmt.Sprintf("udp 198.51.100.9:53 > 203.0.113.2:%d len 20", forth.src.Port())
	if r := h.in(h.xdp, "wan", answer); r.verdict != up || r.reason != "up-device" {
		t.Errorf("to a device without, from XDP: %s %s", r.verdict, r.reason)
	}
	r = h.in(h.tcIn, "wan", answer)
	if r.verdict != redirect || r.reason != "state" {
		t.Fatalf("to a device without: %s %s", r.verdict, r.reason)
	}
	// the redirect itself removes the header
	if text := decodePkt(r.frame[14:]).String(); text != "udp 198.51.100.9:53 > 8.0.0.10:1 len 20 ttl 63" {
		t.Errorf("to a device without: %s", text)
	}
	// All hosts behind it share one next hop.
	_, hosts, _ := net.ParseCIDR("8.1.0.0/16")
	check(t, netlink.RouteAdd(&netlink.Route{LinkIndex: h.net.lan0, Dst: hosts, Scope: netlink.SCOPE_LINK}))
	before := h.dp.tables.shared.NexthopsHigh
	for i := range 9 {
		h.in(h.tcIn, "wan", fmt.Sprintf("udp 198.51.100.9:53 > 8.1.0.%d:1", i))
	}
	if made := h.dp.tables.shared.NexthopsHigh - before; made != 0 {
		t.Errorf("%d next hops were made for 9 hosts behind one device", made)
	}
	testFramed(h)
}

// A device without an Ethernet header whose packets come in with one, which says nothing.
func testFramed(h *harness) {
	t := h.tb
	h.load("pass")
	h.setInterface(h.net.lan0, InterfacePresent|InterfaceL3|InterfaceFramed, "")
	ifindex, frame := h.arrive("lan", "udp 192.168.1.10:8 > 198.51.100.9:53 len 30")
	for _, mac := range []byte{frame[0], 0x02, 0x01} { // ours, another's, a group's
		frame[0], frame[5] = mac, mac
		if r := h.tcIn(ifindex, frame); r.verdict != redirect || r.packet() != "wan udp 192.168.1.10:8 > 198.51.100.9:53 len 30 ttl 63" {
			t.Errorf("to MAC address %x: %s %s %s", frame[:6], r.verdict, r.reason, r.packet())
		}
	}
	h.load("block return")
	h.resetRejects()
	ifindex, frame = h.arrive("lan", "udp 192.168.1.10:9 > 198.51.100.9:53 len 30")
	if r := h.tcIn(ifindex, frame); r.reason != "block" || !strings.HasPrefix(r.packet(), "lan icmp ") || !strings.Contains(r.packet(), " > 192.168.1.10 type 3 code 3 ") {
		t.Errorf("rejected: %s %s %s", r.verdict, r.reason, r.packet())
	}
}

// An interface that XDP cannot redirect to, an unknown one, and one that disappears.
func testDevices(h *harness) {
	t := h.tb
	h.load("pass")
	send := func(what, want string) {
		t.Helper()
		r := h.in(h.xdp, "lan", "udp 192.168.1.10:1 > 198.51.100.9:53")
		if got := fmt.Sprintf("%s %s", r.verdict, r.reason); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	h.setInterface(h.net.wan0, InterfacePresent, wan0MAC)
	send("no target of XDP redirects", "up up-device")
	r := h.in(h.tcIn, "lan", "udp 192.168.1.10:1 > 198.51.100.9:53")
	if got := fmt.Sprintf("%s %s", r.verdict, r.reason); got != "forward state" {
		t.Errorf("no target of XDP redirects, at TCX: %s", got)
	}
	h.setInterface(h.net.wan0, InterfacePresent|InterfaceTarget, wan0MAC)
	h.advance(2)
	send("a target, after the next hop was looked up again", "forward state")
	h.setInterface(h.net.lan0, 0, lan0MAC)
	if r := h.in(h.xdp, "lan", "udp 192.168.1.10:1 > 198.51.100.9:53"); r.verdict != drop {
		t.Errorf("an interface that is not present: %s", r.verdict)
	}
	h.setInterface(h.net.lan0, InterfacePresent|InterfaceTarget, lan0MAC)
	check(t, netlink.LinkDel(must(netlink.LinkByName("wan0"))(t)))
	h.dp.BumpRoutes()
	r = h.in(h.xdp, "lan", "udp 192.168.1.10:1 > 198.51.100.9:53")
	if r.verdict == redirect {
		t.Errorf("a device that is gone: %s %s", r.verdict, r.reason)
	}
}
