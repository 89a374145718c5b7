package dataplane

import "testing"

// An encoded packet reads back the same, and its checksums are right.
func TestPacketTexts(t *testing.T) {
	for _, text := range []string{
		"tcp 192.168.1.10:4000 > 203.0.113.1:80 SA seq 4000000000 ack 7 win 100 wscale 7 len 3 ttl 1",
		"udp 192.168.1.10:4000 > 203.0.113.1:80 len 5 opts 8",
		"udp 192.168.1.10:4000 > 203.0.113.1:80 nosum",
		"udp [fd00:1::10]:53 > [2001:db8::1]:53 len 5 ext hop,dst,ah,rh4",
		"icmp 192.168.1.10 > 203.0.113.1 type 8 id 7 len 2",
		"icmp 203.0.113.9 > 203.0.113.2 type 3 code 4 id 1400 quote udp 203.0.113.2:50001 > 9.9.9.9:53 len 20 ttl 1",
		"icmp6 2001:db8::9 > 2001:db8::1 type 1 quote tcp [2001:db8::1]:5 > [2001:db8::2]:80 A seq 9 len 1",
		"udp 192.168.1.10:5000 > 203.0.113.1:53 frag 0+ id 9 len 1472",
		"udp 192.168.1.10 > 203.0.113.1 frag 1480 id 9 len 100",
		"udp fd00:1::10 > 2001:db8::1 frag 1448+ id 70000 len 80",
		"47 192.168.1.10 > 203.0.113.1 len 12",
	} {
		p := parsePkt(text)
		if got := decodePkt(p.encode()).String(); got != text {
			t.Errorf("%s\nreads %s", text, got)
		}
	}
}
