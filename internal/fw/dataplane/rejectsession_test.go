package dataplane

import (
	"bytes"
	"testing"
)

// What answers a packet of a PPPoE session says how long it is in the session's header: shorter than that packet, or longer.
func TestRejectsInSession(t *testing.T) {
	h := newHarness(t, "block return in on lan0\npass out")
	device := addWire(t, "nic0", lan0MAC, lanHostMAC)
	h.enableXDP(device)
	h.setInterface(device, InterfacePresent|InterfaceTarget|InterfaceXDP, lan0MAC)
	check(t, h.dp.SetInterface(sessionVLAN, Interface{MAC: mac(lan0MAC), MTU: 1492, Flags: InterfacePresent, Parent: device, Tag: 7, TagType: Type8021Q}))
	for _, inVLAN := range []bool{false, true} {
		tags, parent, logical := []tag(nil), device, []int{h.net.lan0}
		if inVLAN {
			tags, parent, logical = []tag{{Type8021Q, 7}}, sessionVLAN, []int{h.net.lan0, sessionVLAN}
		}
		i := Interface{MAC: mac(lan0MAC), MTU: 1492, Flags: InterfacePresent, Parent: parent, Tag: 0x1234, TagType: TypePPPoE, Line: h.net.lan0 + sessionLine, Peer: mac(lanHostMAC)}
		check(t, h.dp.SetInterface(h.net.lan0, i))
		if left := must(h.dp.SetLogicals(logical))(t); left != nil {
			t.Fatalf("no room for %d", left)
		}
		h.advance(2)
		for _, c := range []struct {
			ppp        uint16
			text, want string
		}{
			{0x0021, "tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 7 ack 99 len 100", "tcp 198.51.100.9:80 > 192.168.1.10:4000 R seq 99 win 0"},
			{0x0057, "tcp [fd00:1::10]:4000 > [2001:db8:9::1]:80 S seq 7 len 100", "tcp [2001:db8:9::1]:80 > [fd00:1::10]:4000 RA ack 108 win 0"},
			{0x0021, "udp 192.168.1.10:4000 > 198.51.100.9:80 len 9", "icmp 192.168.1.1 > 192.168.1.10 type 3 code 3 quote udp 192.168.1.10:4000 > 198.51.100.9:80 len 9"},
			{0x0057, "udp [fd00:1::10]:4000 > [2001:db8:9::1]:80 len 1300", ""},
		} {
			h.forget()
			h.resetRejects()
			_, frame := h.arrive("lan", c.text)
			r := h.xdpOn(device, h.net.lan0, withTags(session(frame, 0x1100, 0x1234, uint16(len(frame)-14+2), c.ppp), tags...))
			at := 14 + 4*len(tags) // behind it come the header's first four bytes
			if r.verdict != redirect || len(r.frame) < at+8 {
				t.Errorf("%s: %s %s", c.text, r.verdict, r.reason)
				continue
			}
			size := 0
			switch packet := r.frame[at+8:]; packet[0] >> 4 {
			case 4:
				size = int(packet[2])<<8 | int(packet[3])
			case 6:
				size = 40 + (int(packet[4])<<8 | int(packet[5]))
			}
			if said := int(r.frame[at+4])<<8 | int(r.frame[at+5]); said != size+2 || len(r.frame) < at+6+said {
				t.Errorf("%s, tagged %v: the session's header says %d bytes, and the packet has %d, the frame %d", c.text, tags, said, size, len(r.frame))
			}
			if c.want != "" {
				want := withTags(session(parsePkt(c.want).frame(lan0MAC, lanHostMAC), 0x1100, 0x1234, uint16(size+2), c.ppp), tags...)
				if got := r.frame[:min(len(want), len(r.frame))]; !bytes.Equal(got[:14], want[:14]) || !bytes.Equal(got[at:at+8], want[at:at+8]) {
					t.Errorf("%s:\n%x, want\n%x", c.text, got, want)
				}
			}
		}
	}
}
