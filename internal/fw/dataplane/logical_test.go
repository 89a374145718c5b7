package dataplane

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/fw/bpfload"
)

// newTrunked makes a harness in which lan0 and wan0 are VLANs 10 and 20 of nic0.
func newTrunked(t *testing.T, rules string) *harness {
	h := newHarness(t, rules)
	device := addWire(t, "nic0", lan0MAC, lanHostMAC)
	h.enableXDP(device)
	h.setTrunk(device, []tag{{Type8021Q, 10}}, []tag{{Type8021Q, 20}})
	return h
}

// A frame belongs to the VLAN device of its tags and to no other interface. XDP does not
// filter a frame with other tags, and writes no metadata for TCX.
func TestFramesBelong(t *testing.T) {
	h := newTrunked(t, "block\npass in on lan0\npass out on wan0")
	trunk := h.trunk.device
	_, frame := h.arrive("lan", "udp 192.168.1.10:1 > 198.51.100.9:53")
	priority := tag{Type8021Q, 0xa00a}
	for _, test := range []struct {
		name string
		tags []tag
		want string // verdict; reasons counted at lan0, at wan0 and at the trunk
	}{
		{"its tag", []tag{{Type8021Q, 10}}, "forward rule||"},
		{"its tag, with a priority", []tag{priority}, "forward rule||"},
		{"the tag of an interface with another MAC", []tag{{Type8021Q, 20}}, "up |other-mac|"},
		{"the id in another kind of tag", []tag{{Type8021AD, 10}}, "up ||implicit"},
		{"nobody's tag", []tag{{Type8021Q, 11}}, "up ||implicit"},
		{"a priority only", []tag{{Type8021Q, 0xa000}}, "up ||implicit"},
		{"a priority, then its tag", []tag{{Type8021Q, 0xa000}, {Type8021Q, 10}}, "up ||implicit"},
		{"its tag, then nobody's", []tag{{Type8021Q, 10}, {Type8021Q, 11}}, "up ||implicit"},
		{"its tag, then a priority", []tag{{Type8021Q, 10}, {Type8021Q, 0}}, "up ||implicit"},
		{"none", nil, "drop ||block"},
	} {
		h.forget()
		r := h.xdpOn(trunk, h.net.lan0, withTags(frame, test.tags...))
		got := fmt.Sprintf("%s %s|%s|%s", r.verdict, r.reason, h.counts(h.net.wan0), h.counts(trunk))
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
		if r.meta {
			t.Errorf("%s: metadata for interface %d", test.name, r.believes)
		}
	}
	for cut := 14; cut < 18; cut++ {
		if r := h.xdpOn(trunk, trunk, withTags(frame, priority)[:cut]); r.verdict != up || r.reason != "implicit" {
			t.Errorf("cut in its tag, to %d bytes: %s %s", cut, r.verdict, r.reason)
		}
	}
	arp := withTags(ethernet(lanHostMAC, lan0MAC, 0x0806), priority)
	if r := h.xdpOn(trunk, h.net.lan0, append(arp, make([]byte, 28)...)); r.verdict != up || r.reason != "implicit" || h.counts(trunk) != "" {
		t.Errorf("ARP: %s %s", r.verdict, r.reason)
	}
}

// session puts a frame's packet into a PPPoE session. kind is version, type and code,
// length what the header says, and ppp the protocol.
func session(frame []byte, kind, id, length, ppp uint16) []byte {
	header := make([]byte, 0, pppoeLength+2)
	for _, word := range []uint16{TypePPPoE, kind, id, length, ppp} {
		header = binary.BigEndian.AppendUint16(header, word)
	}
	return slices.Concat(frame[:12], header, frame[14:])
}

// sessionVLAN is the index of a VLAN device under a session.
const sessionVLAN = 9000

// sessionLine is the distance to the index of a session's line.
const sessionLine = 100

// The packets of a PPPoE session belong to its interface, and go back into it. All that
// is not an IP packet of a known session goes to the stack as it is.
func TestSessionsBelong(t *testing.T) {
	h := newHarness(t, "block\npass in on lan0\npass out on wan0")
	device, vlan := addWire(t, "nic0", lan0MAC, lanHostMAC), sessionVLAN
	h.enableXDP(device)
	tell := func(ifindex, parent int, id, etherType uint16) {
		i := Interface{MAC: mac(lan0MAC), MTU: 1492, Flags: InterfacePresent, Parent: parent, Tag: id, TagType: etherType}
		if etherType == TypePPPoE {
			i.Line, i.Peer = ifindex+sessionLine, mac(lanHostMAC)
		}
		check(t, h.dp.SetInterface(ifindex, i))
	}
	h.setInterface(device, InterfacePresent|InterfaceTarget|InterfaceXDP, lan0MAC)
	for _, inVLAN := range []bool{false, true} {
		var tags []tag
		if inVLAN {
			tell(vlan, device, 7, Type8021Q)
			tell(h.net.lan0, vlan, 0x1234, TypePPPoE)
			tags = []tag{{Type8021Q, 7}}
		} else {
			tell(h.net.lan0, device, 0x1234, TypePPPoE)
		}
		logical := []int{h.net.lan0}
		if inVLAN {
			logical = append(logical, vlan)
		}
		if left := must(h.dp.SetLogicals(logical))(t); left != nil {
			t.Fatalf("no room for %d", left)
		}
		h.advance(2) // next hops are looked up again
		for ppp, texts := range map[uint16][2]string{
			0x0021: {"udp 192.168.1.10:1 > 198.51.100.9:53 len 9", "udp 198.51.100.9:53 > 192.168.1.10:1 len 9"},
			0x0057: {"udp [fd00:1::10]:1 > [2001:db8:9::1]:53 len 9", "udp [2001:db8:9::1]:53 > [fd00:1::10]:1 len 9"},
		} {
			h.sessionBothWays(device, ppp, texts, tags)
			h.sessionsOfTheStack(device, ppp, texts[0], tags)
		}
		h.sessionGoesUp(device, 0x0021, "udp 192.168.1.10:1 > 192.168.1.1:53 len 9", tags)
		h.sessionGoesUp(device, 0x0057, "udp [fd00:1::10]:1 > [fd00:1::1]:53 len 9", tags)
	}
}

// A session ends with a PADT or a Terminate-Request of its concentrator, and with nothing else: XDP then takes
// none of its packets, and sends none into it.
func TestSessionsEnd(t *testing.T) {
	h := newHarness(t, "pass")
	device := addWire(t, "nic0", lan0MAC, lanHostMAC)
	h.enableXDP(device)
	h.setInterface(device, InterfacePresent|InterfaceTarget|InterfaceXDP, lan0MAC)
	const padt, data = 0x11a7, 0x1100
	to, from, stranger := mac(lan0MAC), mac(lanHostMAC), mac(wanHostMAC)
	pppoe := func(etherType, kind, id uint16, payload ...byte) []byte {
		b := slices.Concat(to, from)
		for _, word := range []uint16{etherType, kind, id, uint16(len(payload))} {
			b = binary.BigEndian.AppendUint16(b, word)
		}
		return append(append(b, payload...), make([]byte, 40-len(payload))...)
	}
	other := func(at int, mac, frame []byte) []byte {
		copy(frame[at:], mac)
		return frame
	}
	for _, test := range []struct {
		name  string
		frame []byte
		ends  bool
	}{
		{"a PADT", pppoe(0x8863, padt, 0x1234), true},
		{"a Terminate-Request", pppoe(TypePPPoE, data, 0x1234, 0xc0, 0x21, 5, 7, 0, 4), true},
		{"another session's PADT", pppoe(0x8863, padt, 0x1235), false},
		{"another station's PADT", other(6, stranger, pppoe(0x8863, padt, 0x1234)), false},
		{"a PADT to another station", other(0, stranger, pppoe(0x8863, padt, 0x1234)), false},
		{"a PADT to all", other(0, bytes.Repeat([]byte{0xff}, 6), pppoe(0x8863, padt, 0x1234)), false},
		{"a PADT in a VLAN", withTags(pppoe(0x8863, padt, 0x1234), tag{Type8021Q, 7}), false},
		{"an echo request", pppoe(TypePPPoE, data, 0x1234, 0xc0, 0x21, 9, 7, 0, 8, 1, 2, 3, 4), false},
		{"another station's Terminate-Request", other(6, stranger, pppoe(TypePPPoE, data, 0x1234, 0xc0, 0x21, 5, 7, 0, 4)), false},
		{"a Terminate-Request whose lengths differ", pppoe(TypePPPoE, data, 0x1234, 0xc0, 0x21, 5, 7, 0, 5), false},
	} {
		h.forget()
		i := Interface{MAC: to, MTU: 1492, Flags: InterfacePresent, Parent: device, Tag: 0x1234, TagType: TypePPPoE, Line: h.net.lan0 + sessionLine, Peer: from}
		check(t, h.dp.SetInterface(h.net.lan0, i))
		if left := must(h.dp.SetLogicals([]int{h.net.lan0}))(t); left != nil {
			t.Fatalf("no room for %d", left)
		}
		h.advance(2) // next hops are looked up again
		h.sessionBothWays(device, 0x0021, [2]string{"udp 192.168.1.10:1 > 198.51.100.9:53 len 9", "udp 198.51.100.9:53 > 192.168.1.10:1 len 9"}, nil)
		if heard := h.dp.Heard(h.net.lan0 + sessionLine); heard == 0 {
			t.Error("packets have come, and nobody has heard of them")
		}
		if r := h.tcIn(device, test.frame); r.verdict != up || !bytes.Equal(r.frame, test.frame) {
			t.Errorf("%s: %s %s", test.name, r.verdict, r.reason)
		}
		if open := h.dp.HasSession(h.net.lan0); open == test.ends {
			t.Errorf("%s: the session is open: %t", test.name, open)
		}
		_, frame := h.arrive("lan", "udp 192.168.1.10:1 > 198.51.100.9:53 len 9")
		in := h.xdpOn(device, h.net.lan0, session(frame, data, 0x1234, uint16(len(frame)-14+2), 0x0021))
		_, reply := h.arrive("wan", "udp 198.51.100.9:53 > 192.168.1.10:1 len 9")
		out := h.xdpOn(h.net.wan0, h.net.wan0, reply)
		if test.ends != (in.verdict == up) || test.ends != (out.verdict == up) {
			t.Errorf("%s: then a packet comes: %s %s, and one leaves: %s %s", test.name, in.verdict, in.reason, out.verdict, out.reason)
		}
	}
}

// sessionGoesUp sends the box itself a packet in a session. The stack gets it without the session,
// with a verdict for the session's interface.
func (h *harness) sessionGoesUp(device int, ppp uint16, text string, tags []tag) {
	h.tb.Helper()
	h.forget()
	_, frame := h.arrive("lan", text)
	in := withTags(session(frame, 0x1100, 0x1234, uint16(len(frame)-14+2), ppp), tags...)
	want := withTags(frame, tags...)
	if r := h.xdpOn(device, h.net.lan0, in); r.verdict != up || !r.meta || r.believes != h.net.lan0 || !bytes.Equal(r.frame, want) {
		h.tb.Errorf("%s in a session: %s %s, metadata %t for interface %d\n%x, want\n%x", text, r.verdict, r.reason, r.meta, r.believes, r.frame, want)
	}
}

// sessionBothWays sends a packet out of a session and the reply back into it.
func (h *harness) sessionBothWays(device int, ppp uint16, texts [2]string, tags []tag) {
	h.tb.Helper()
	h.forget()
	_, frame := h.arrive("lan", texts[0])
	size := uint16(len(frame) - 14 + 2)
	for i, in := range [][]byte{session(frame, 0x1100, 0x1234, size, ppp), append(session(frame, 0x1100, 0x1234, size+4, ppp), 1, 2, 3, 4, 5)} {
		r := h.xdpOn(device, h.net.lan0, withTags(in, tags...))
		want := parsePkt(texts[0]+" ttl 63").frame(wan0MAC, wanHostMAC)
		if r.verdict != redirect || r.reason != []string{"rule", "state"}[i] || len(r.frame) < 60 || !bytes.Equal(r.frame[:len(want)], want) {
			h.tb.Errorf("%s in a session: %s %s\n%x, want\n%x", texts[0], r.verdict, r.reason, r.frame, want)
		}
		if slices.ContainsFunc(r.frame[len(want):], func(b byte) bool { return b > 5 }) {
			h.tb.Errorf("%s: filled up with %x", texts[0], r.frame[len(want):])
		}
	}
	_, reply := h.arrive("wan", texts[1])
	out := parsePkt(texts[1]+" ttl 63").frame(lan0MAC, lanHostMAC)
	want := withTags(session(out, 0x1100, 0x1234, size, ppp), tags...)
	if r := h.xdpOn(h.net.wan0, h.net.wan0, reply); r.verdict != redirect || !bytes.Equal(r.frame, want) {
		h.tb.Errorf("%s into a session: %s %s\n%x, want\n%x", texts[1], r.verdict, r.reason, r.frame, want)
	}
}

// sessionsOfTheStack sends frames that are no packets of the session, and frames that are
// cut.
func (h *harness) sessionsOfTheStack(device int, ppp uint16, text string, tags []tag) {
	h.tb.Helper()
	_, frame := h.arrive("lan", text)
	size := uint16(len(frame) - 14 + 2)
	whole := withTags(session(frame, 0x1100, 0x1234, size, ppp), tags...)
	all := map[string][]byte{
		"another session":      withTags(session(frame, 0x1100, 0x1235, size, ppp), tags...),
		"another version":      withTags(session(frame, 0x2100, 0x1234, size, ppp), tags...),
		"the end of a session": withTags(session(frame, 0x11a7, 0x1234, size, ppp), tags...),
		"another station's":    slices.Concat(whole[:6], mac(wanHostMAC), whole[12:]),
		"LCP":                  withTags(session(frame, 0x1100, 0x1234, size, 0xc021), tags...),
		"a length of 0":        withTags(session(frame, 0x1100, 0x1234, 0, ppp), tags...),
		"too long for it":      withTags(session(frame, 0x1100, 0x1234, size-1, ppp), tags...),
		"shorter than it says": withTags(session(frame, 0x1100, 0x1234, size+1, ppp), tags...),
		"in another VLAN":      withTags(whole, tag{Type8021Q, 8}),
		"discovery":            withTags(slices.Concat(frame[:12], []byte{0x88, 0x63}, whole[len(tags)*4+14:]), tags...),
	}
	for length := 14; length < len(whole); length++ {
		all[fmt.Sprintf("cut to %d bytes", length)] = whole[:length]
	}
	for name, in := range all {
		r := h.xdpOn(device, device, in)
		counted := strings.TrimSpace(r.reason + " " + h.counts(sessionVLAN))
		if r.verdict != up || counted != "implicit" || r.meta || !bytes.Equal(r.frame, in) || h.counts(h.net.lan0) != "" {
			h.tb.Errorf("%s, %v: %s %s, metadata %t\n%x, was\n%x", name, tags, r.verdict, counted, r.meta, r.frame, in)
		}
	}
}

// An interface that is gone, or that XDP may no longer take frames for, gets none.
func TestLogicalsChange(t *testing.T) {
	h := newTrunked(t, "pass")
	send := func(when, want string) {
		t.Helper()
		_, frame := h.arrive("lan", "udp 192.168.1.10:1 > 192.168.1.1:53")
		r := h.xdpOn(h.trunk.device, h.net.lan0, withTags(frame, tag{Type8021Q, 10}))
		if got := fmt.Sprintf("%s %s %s", r.verdict, r.reason, h.counts(h.trunk.device)); strings.Join(strings.Fields(got), " ") != want {
			t.Errorf("%s: got %s, want %s", when, got, want)
		}
	}
	set := func(ifindexes ...int) {
		t.Helper()
		if left := must(h.dp.SetLogicals(ifindexes))(t); left != nil {
			t.Errorf("left: %d", left)
		}
		if got := h.dp.Logicals(); !slices.Equal(got, ifindexes) {
			t.Errorf("logical interfaces are %d, want %d", got, ifindexes)
		}
	}
	send("at first", "up local")
	set(h.net.wan0)
	send("taken out", "up implicit")
	set(h.net.lan0, h.net.wan0)
	send("entered again", "up local")
	check(t, h.dp.RemoveInterface(h.net.lan0))
	delete(h.counted, h.net.lan0)
	h.setInterface(h.net.lan0, allFlags, lan0MAC)
	send("another with its index, of which nobody has said that", "up implicit")
	set(h.net.lan0, h.net.wan0)
	check(t, h.dp.RemoveInterface(h.trunk.device))
	if got := h.dp.Logicals(); got != nil {
		t.Errorf("logical interfaces of a trunk that is gone: %d", got)
	}
}

// All VLANs of a device fit. An interface with more tags than a frame can have is left
// out.
func TestLogicalsFit(t *testing.T) {
	h := newHarness(t, "pass")
	const first, vlans = 100, 4094
	check(t, h.dp.SetInterface(first, Interface{MTU: 1500, Flags: InterfacePresent}))
	var all []int
	for id := 1; id <= vlans; id++ {
		check(t, h.dp.SetInterface(first+id, Interface{MTU: 1500, Flags: InterfacePresent, Parent: first, Tag: uint16(id), TagType: Type8021Q}))
		all = append(all, first+id)
	}
	left := must(h.dp.SetLogicals(all))(t)
	if len(left) > 8 || len(h.dp.Logicals())+len(left) != vlans {
		t.Errorf("%d of %d VLANs have no room, %d have", len(left), vlans, len(h.dp.Logicals()))
	}
	for i, parent := range []int{first + 1, first + 5000} {
		check(t, h.dp.SetInterface(first+5000+i, Interface{MTU: 1500, Flags: InterfacePresent, Parent: parent, Tag: 7, TagType: Type8021Q}))
	}
	if left := must(h.dp.SetLogicals([]int{first + 1, first + 5000, first + 5001}))(t); !slices.Equal(left, []int{first + 5001}) {
		t.Errorf("left out: %d, want the one with three tags", left)
	}
}

// The bytes that a next hop puts before a packet, and the MTU that is left.
func TestEncapsulation(t *testing.T) {
	h := newHarness(t, "pass")
	device := addWire(t, "nic0", lan0MAC, lanHostMAC)
	h.enableXDP(device)
	inner := 9000 // of an interface without routes
	tell := func(ifindex, parent int, id, etherType uint16) {
		t.Helper()
		check(t, h.dp.SetInterface(ifindex, Interface{MAC: mac(wan0MAC), MTU: 1500, Flags: InterfacePresent, Parent: parent, Tag: id, TagType: etherType}))
	}
	for _, test := range []struct {
		name  string
		tell  func()
		want  string // after the MACs
		most  int    // bytes of the longest packet
		most6 bool   // the same for IPv6
	}{
		{"a tag", func() { tell(h.net.wan0, device, 0x6007, Type8021Q) }, "8100 6007 0800", 1500, false},
		{"a service tag", func() { tell(h.net.wan0, device, 7, Type8021AD) }, "88a8 0007 86dd", 1500, true},
		{"two tags", func() { tell(inner, device, 5, Type8021AD); tell(h.net.wan0, inner, 7, Type8021Q) }, "88a8 0005 8100 0007 0800", 1496, false},
		{"a PPPoE session", func() { tell(h.net.wan0, device, 0x1234, TypePPPoE) }, "8864 1100 1234 LLLL 0021", 1496, false},
		{"a PPPoE session, IPv6", func() { tell(h.net.wan0, device, 0x1234, TypePPPoE) }, "8864 1100 1234 LLLL 0057", 1496, true},
		{"a PPPoE session in a VLAN", func() { tell(inner, device, 7, Type8021Q); tell(h.net.wan0, inner, 0xffff, TypePPPoE) }, "8100 0007 8864 1100 ffff LLLL 0021", 1492, false},
	} {
		h.forget()
		h.setInterface(device, InterfacePresent|InterfaceTarget, lan0MAC)
		test.tell()
		h.advance(2) // next hops are looked up again
		packet, header := "udp 192.168.1.10:4000 > 198.51.100.9:53 len %d", 28
		if test.most6 {
			packet, header = "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53 len %d", 48
		}
		for _, size := range []int{header + 5, test.most, test.most + 1} {
			r := h.in(h.xdp, "lan", fmt.Sprintf(packet, size-header))
			if size > test.most {
				if r.reason != "up-mtu" {
					t.Errorf("%s: %d bytes: %s %s, want up-mtu", test.name, size, r.verdict, r.reason)
				}
				continue
			}
			want := strings.ReplaceAll(strings.ReplaceAll(wanHostMAC+wan0MAC+test.want, ":", ""), " ", "")
			want = strings.ReplaceAll(want, "LLLL", fmt.Sprintf("%04x", size+2))
			if got := hex.EncodeToString(r.frame[:min(len(want)/2, len(r.frame))]); r.verdict != redirect || got != want {
				t.Errorf("%s: %d bytes: %s %s, leaves with %s, want %s", test.name, size, r.verdict, r.reason, got, want)
			} else if len(r.frame) != len(want)/2+size {
				t.Errorf("%s: %d bytes: a frame of %d", test.name, size, len(r.frame))
			}
			if via := h.carriers(h.net.wan0); len(via) == 0 || slices.ContainsFunc(via, func(d int) bool { return d != device }) {
				t.Errorf("%s: redirected to devices %d, not %d", test.name, via, device)
			}
		}
	}
	tell(inner, device, 5, Type8021AD)
	tell(inner+1, inner, 6, Type8021Q)
	tell(h.net.wan0, inner+1, 7, Type8021Q)
	h.advance(2)
	if r := h.in(h.xdp, "lan", "udp 192.168.1.10:4001 > 198.51.100.9:53"); r.reason != "up-device" {
		t.Errorf("three tags: %s %s, want up-device", r.verdict, r.reason)
	}
}

// carriers returns the devices to which XDP redirects what leaves by an interface.
func (h *harness) carriers(ifindex int) (devices []int) {
	shared := h.dp.tables.shared
	for i := range shared.NexthopsHigh {
		if n := &shared.Nexthops[nexthopFirst+i]; int(n.Ifindex) == ifindex && n.Checked == shared.Now {
			devices = append(devices, int(n.Encap.Device))
		}
	}
	return devices
}

// A capture shows a VLAN device's packets like a capture on the device: only its own,
// without tags.
func TestCaptureOfLogicals(t *testing.T) {
	h := newTrunked(t, "pass proto udp\nblock return proto tcp")
	h.capture(CaptureBytes, everything)
	ifindex, frame := h.arrive("lan", "udp 192.168.1.10:4000 > 198.51.100.9:53 len 900")
	left := h.xdp(ifindex, frame)
	got := h.captured()
	if len(got) != 2 || !bytes.Equal(got[0].Data, frame) || !bytes.Equal(got[1].Data, left.frame) ||
		int(got[0].Ifindex) != h.net.lan0 || int(got[1].Peer) != h.net.wan0 || int(got[1].Length) != len(left.frame) {
		t.Errorf("redirected: %+v", got)
	}
	ifindex, frame = h.arrive("lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S")
	left = h.xdp(ifindex, frame)
	got = h.captured()
	if len(got) != 2 || !bytes.Equal(got[0].Data, frame) || !bytes.Equal(got[1].Data, left.frame) || int(got[1].Peer) != h.net.lan0 {
		t.Errorf("rejected: %+v", got)
	}
	h.capture(20, everything)
	h.xdp(ifindex, frame)
	if got = h.captured(); len(got) != 2 || !bytes.Equal(got[0].Data, frame[:20]) {
		t.Errorf("20 bytes: %+v", got)
	}
	stranger := withTags(frame, tag{Type8021Q, 11})
	h.xdpOn(h.trunk.device, h.trunk.device, stranger)
	if got = h.captured(); len(got) != 2 || int(got[0].Ifindex) != h.trunk.device || !bytes.Equal(got[0].Data, stranger[:20]) {
		t.Errorf("nobody's tag: %+v", got)
	}
}

// Packets with tags are prefetched like others.
func TestPrefetchAtLogicals(t *testing.T) {
	h := newTrunked(t, "pass")
	h.prefetch(true)
	packet := "udp 192.168.1.10:4000 > 198.51.100.9:53"
	h.in(h.xdp, "lan", packet)
	h.in(h.xdp, "lan", packet)
	before := h.twice
	r := h.in(h.xdp, "lan", packet)
	if h.twice != before+1 || r.verdict != redirect || r.reason != "state" {
		t.Errorf("%s %s, prefetched: %t", r.verdict, r.reason, h.twice != before)
	}
	_, frame := h.arrive("lan", packet)
	tagged := bpfload.Run{Frame: withTags(frame, tag{Type8021Q, 10}), Ifindex: h.trunk.device}
	h.cool()
	noted := must(bpfload.RunXDP(h.program("weir_xdp"), tagged))(t)
	must(h.dp.SetLogicals([]int{h.net.wan0}))(t)
	h.exit(h.trunk.device, &noted)
	if why := h.counts(h.trunk.device); why != "hint-stale" {
		t.Errorf("its tag was another's at the second pass: %q", why)
	}
}
