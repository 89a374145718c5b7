package dataplane

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// bridge-to sends a frame to another interface as it is, also one without an IP packet. XDP
// leaves that to TCX.
func TestBridgeTo(t *testing.T) {
	h := newHarness(t, "ether pass in on lan0 bridge-to wan0 proto 0x888e\nether pass out on lan0 bridge-to wan0 proto 0x0800\n"+
		"ether pass in on lan0 bridge-to none0 proto 0x0806\nether pass in on wan0 bridge-to lan0 proto 0x0800 from "+wanHostMAC+"\nblock\npass out on lan0")
	h.meetFrames(h.dp.config.Program)
	eapol := append(ethernet(lanHostMAC, "01:80:c2:00:00:03", 0x888e), bytes.Repeat([]byte{7}, 46)...)
	arp := append(ethernet(lanHostMAC, "ff:ff:ff:ff:ff:ff", 0x0806), make([]byte, 46)...)
	_, ip := h.arrive("wan", "udp 198.51.100.9:53 > 192.168.1.10:1")
	_, own := h.arrive("lan", "udp 192.168.1.1:5 > 192.168.1.10:53")
	for _, test := range []struct {
		name  string
		run   func(int, []byte) result
		at    int
		frame []byte
		want  string
	}{
		{"EAPOL by XDP", h.xdp, h.net.lan0, eapol, "up up-device"},
		{"EAPOL by TCX", h.tcIn, h.net.lan0, eapol, "forward rule"},
		{"another EtherType", h.tcIn, h.net.wan0, eapol, "up implicit"},
		{"IP that the rules block", h.tcIn, h.net.wan0, ip, "forward rule"},
		{"an interface that does not exist, by XDP", h.xdp, h.net.lan0, arp, "drop interface"},
		{"an interface that does not exist, by TCX", h.tcIn, h.net.lan0, arp, "drop interface"},
		{"what leaves", func(at int, frame []byte) result { return h.tcOut(at, frame, 0) }, h.net.lan0, own, "forward rule"},
	} {
		r := test.run(test.at, slices.Clone(test.frame))
		if got := fmt.Sprintf("%s %s", r.verdict, r.reason); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		if r.verdict != drop && !bytes.Equal(r.frame, test.frame) {
			t.Errorf("%s: the frame is another one", test.name)
		}
		if back := test.want == "up up-device"; r.back != back || back && r.number != metadataBridge|uint32(h.net.wan0) {
			t.Errorf("%s: TCX ingress redirects: %t, number %#x", test.name, r.back, r.number)
		}
	}
}
