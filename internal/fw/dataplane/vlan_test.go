package dataplane

import (
	"encoding/hex"
	"fmt"
	"net"
	"strings"

	"weir/internal/fw/bpfload"
)

// XDP sends frames for a VLAN device to its parent, with the tag in the frame. TCX
// redirects to the device itself. Here wan0 is a VLAN device on lan0.
func testTags(h *harness) {
	t := h.tb
	h.load(masquerade + "match out proto udp to port 7 tag x\npass proto tcp\npass proto udp no state")
	vlan := Interface{MAC: mac(wan0MAC), MTU: 1500, Flags: InterfacePresent, Parent: h.net.lan0, Tag: 0x6007, TagType: Type8021Q}
	check(t, h.dp.SetInterface(h.net.wan0, vlan))
	for _, test := range []struct{ packet, want, leaves string }{
		{"tcp 192.168.1.10:4000 > 198.51.100.9:80 S", "forward rule", "tcp 203.0.113.2:%d > 198.51.100.9:80 S ttl 63"},
		{"tcp 192.168.1.10:4000 > 198.51.100.9:80 A len 7", "forward state", "tcp 203.0.113.2:%d > 198.51.100.9:80 A len 7 ttl 63"},
		{"tcp [fd00:1::10]:4000 > [2001:db8:9::1]:80 S", "forward rule", "tcp [2001:db8:113::2]:%d > [2001:db8:9::1]:80 S ttl 63"},
		{"tcp [fd00:1::10]:4000 > [2001:db8:9::1]:80 A", "forward state", "tcp [2001:db8:113::2]:%d > [2001:db8:9::1]:80 A ttl 63"},
		{"icmp 192.168.1.10 > 198.51.100.9 type 11 quote udp 198.51.100.9:1 > 192.168.1.10:2", "forward no-rule", ""},
	} {
		r := h.in(h.xdp, "lan", test.packet)
		if got := fmt.Sprintf("%s %s", r.verdict, r.reason); got != test.want {
			t.Errorf("%s: got %s, want %s", test.packet, got, test.want)
			continue
		}
		etherType := "0800"
		if strings.Contains(test.packet, "[") {
			etherType = "86dd"
		}
		head := strings.ReplaceAll(wanHostMAC+wan0MAC, ":", "") + "81006007" + etherType
		if got := hex.EncodeToString(r.frame[:18]); got != head {
			t.Errorf("%s: leaves with %s, want %s", test.packet, got, head)
		}
		left := decodePkt(r.frame[18:])
		if want := test.leaves; want != "" && left.String() != fmt.Sprintf(want, left.src.Port()) {
			t.Errorf("%s: leaves as %s", test.packet, left)
		}
	}
	r := h.in(h.tcIn, "lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 A len 7")
	if got := fmt.Sprintf("%s %s", r.verdict, r.reason); got != "forward state" || net.HardwareAddr(r.frame[:6]).String() != wanHostMAC || r.frame[12] != 8 {
		t.Errorf("at TCX: %s %x", got, r.frame[:18])
	}
	h.advance(1)
	h.setInterface(h.net.lan0, InterfacePresent, lan0MAC)
	if r := h.in(h.xdp, "lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 A len 7"); r.reason != "up-device" {
		t.Errorf("the parent is no target of XDP redirects: %s %s", r.verdict, r.reason)
	}
}

// A tagged frame belongs to its VLAN device, whatever follows the tag.
func testTagged(h *harness) {
	t := h.tb
	h.load("block")
	for _, etherType := range []uint16{0x8100, 0x88a8} {
		ifindex, plain := h.arrive("lan", "udp 192.168.1.10:1 > 198.51.100.9:53")
		frame := ethernet(lanHostMAC, lan0MAC, etherType)
		frame = append(append(frame, 0, 7), plain[12:]...)
		if r := h.xdp(ifindex, frame); r.verdict != up || r.reason != "implicit" || r.meta {
			t.Errorf("tag %#x: %s %s, metadata: %t", etherType, r.verdict, r.reason, r.meta)
		}
	}
}

// Nothing leaves by an interface without programs, because the replies would bypass weir.
func testClosed(h *harness) {
	t := h.tb
	h.load("pass proto tcp\npass proto udp no state")
	syn, data, udp := "tcp 192.168.1.10:1 > 198.51.100.9:80 S", "tcp 192.168.1.10:1 > 198.51.100.9:80 A", "udp 192.168.1.10:1 > 198.51.100.9:53"
	send := func(packet, want string) {
		t.Helper()
		if r := h.in(h.xdp, "lan", packet); fmt.Sprintf("%s %s", r.verdict, r.reason) != want {
			t.Errorf("%s: got %s %s, want %s", packet, r.verdict, r.reason, want)
		}
	}
	first, later := "udp 192.168.1.10:5000 > 198.51.100.9:53 frag 0+ id 9 len 1472", "udp 192.168.1.10 > 198.51.100.9 frag 1480 id 9 len 20"
	send(syn, "forward rule")
	send(first, "forward rule")
	check(t, h.dp.RemoveInterface(h.net.wan0))
	h.dp.BumpRoutes()
	send(data, "drop interface")
	send(udp, "drop interface")
	send(later, "drop interface")
	h.setInterface(h.net.wan0, InterfacePresent|InterfaceTarget, wan0MAC)
	send(data, "forward state")
	send(udp, "forward rule")
}

// If the driver has no room for metadata (here as much metadata as fits is already
// there), XDP leaves everything to TCX, beginning with the first packet that needs
// metadata.
func testBare(h *harness) {
	t := h.tb
	h.load("pass")
	send := func(what, packet, want string) {
		t.Helper()
		ifindex, frame := h.arrive("lan", packet)
		o := must(bpfload.RunXDP(h.program("weir_xdp"), bpfload.Run{Frame: frame, Ifindex: ifindex, Meta: make([]byte, 212)}))(t)
		r := xdpResult(&o)
		if got := strings.TrimSpace(fmt.Sprintf("%s %s", r.verdict, h.counts(ifindex))); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	forwarded, local := "udp 192.168.1.10:1 > 198.51.100.9:53", "udp 192.168.1.10:1 > 192.168.1.1:53"
	send("what XDP redirects needs no metadata", forwarded, "forward rule")
	if h.dp.LacksHeadroom(h.net.lan0) {
		t.Error("lan0 is bare before a packet found out")
	}
	send("the first for the box", local, "drop metadata")
	if !h.dp.LacksHeadroom(h.net.lan0) {
		t.Error("lan0 is not bare after a packet found out")
	}
	send("the next", local, "up")
	send("the next that XDP could redirect", forwarded, "up")
	h.setInterface(h.net.lan0, allFlags|InterfaceXDP, lan0MAC)
	send("when the daemon has entered it again", local, "up")
	for packet, want := range map[string]string{local: "up local", forwarded: "forward state", "udp 192.168.1.10:2 > 192.168.1.1:54": "up local"} {
		if r := h.in(h.tcIn, "lan", packet); fmt.Sprintf("%s %s", r.verdict, r.reason) != want {
			t.Errorf("%s at TCX: %s %s, want %s", packet, r.verdict, r.reason, want)
		}
	}
	h.setInterface(h.net.lan0, allFlags, lan0MAC)
	send("while XDP is being taken off", local, "up")
	check(t, h.dp.RemoveInterface(h.net.lan0))
	h.setInterface(h.net.lan0, allFlags, lan0MAC)
	delete(h.counted, h.net.lan0) // its counters begin anew
	if h.dp.LacksHeadroom(h.net.lan0) {
		t.Error("another interface with its index is bare")
	}
}
