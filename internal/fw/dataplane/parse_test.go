package dataplane

import (
	"encoding/binary"
	"strings"
)

// set8 and set16 change bytes of a packet, counted from its IP header.
func set8(at int, value byte) func([]byte) []byte {
	return func(b []byte) []byte { b[14+at] = value; return b }
}

func set16(at int, value uint16) func([]byte) []byte {
	return func(b []byte) []byte { b[14+at], b[14+at+1] = byte(value>>8), byte(value); return b }
}

// cut leaves only size bytes of the packet.
func cut(size int) func([]byte) []byte {
	return func(b []byte) []byte { return b[:14+size] }
}

func pad(size int) func([]byte) []byte {
	return func(b []byte) []byte { return append(b, make([]byte, size)...) }
}

func destination(mac string) func([]byte) []byte {
	return func(b []byte) []byte { copy(b, ethernet(mac, mac, 0)[:6]); return b }
}

func ethertype(t uint16) func([]byte) []byte { return set16(-2, t) }

// sumHeader sets the checksum of an IPv4 header without options, if it is in the frame.
func sumHeader(b []byte) {
	if len(b) < 34 || binary.BigEndian.Uint16(b[12:]) != 0x0800 || b[14] != 0x45 {
		return
	}
	setHeaderSum(b[14:34])
}

// What packet/parse.h accepts and refuses, at both hooks.
func testParse(h *harness) {
	t := h.tb
	const (
		tcp4  = "tcp 192.168.1.10:4000 > 198.51.100.9:80 S len 20"
		udp4  = "udp 192.168.1.10:4000 > 198.51.100.9:80 len 20"
		icmp4 = "icmp 192.168.1.10 > 198.51.100.9 type 8 id 3 len 20"
		tcp6  = "tcp [fd00:1::10]:4000 > [2001:db8:9::1]:80 S len 20"
		udp6  = "udp [fd00:1::10]:4000 > [2001:db8:9::1]:80 len 20"
		icmp6 = "icmp6 fd00:1::10 > 2001:db8:9::1 type 128 id 3 len 20"
		gre4  = "47 192.168.1.10 > 198.51.100.9 len 20"
	)
	same := func(b []byte) []byte { return b }
	h.load("pass allow-opts")
	for _, test := range []struct {
		name   string
		packet string
		change func([]byte) []byte
		want   string
	}{
		{"tcp", tcp4, same, "forward rule"},
		{"udp", udp4, same, "forward rule"},
		{"icmp", icmp4, same, "forward rule"},
		{"tcp6", tcp6, same, "forward rule"},
		{"udp6", udp6, same, "forward rule"},
		{"icmp6", icmp6, same, "forward rule"},
		{"gre", gre4, same, "forward rule"},
		{"padding", udp4, pad(9), "forward rule"},
		{"other mac", udp4, destination("02:00:00:00:00:09"), "up other-mac"},
		{"arp", udp4, ethertype(0x0806), "up implicit"},
		{"vlan", udp4, ethertype(0x8100), "up implicit"},
		{"pppoe", udp4, ethertype(0x8864), "up implicit"},
		{"ip header cut to a byte", udp4, cut(1), "drop short"},
		{"ip header cut to 19", udp4, cut(19), "drop short"},
		{"ip header cut to 39", udp6, cut(39), "drop short"},
		{"tcp header cut, lengths agree", tcp4, func(b []byte) []byte { return set16(2, 39)(b)[:14+39] }, "drop short"},
		{"udp header cut, lengths agree", udp4, func(b []byte) []byte { return set16(2, 27)(b)[:14+27] }, "drop short"},
		{"icmp header cut, lengths agree", icmp4, func(b []byte) []byte { return set16(2, 27)(b)[:14+27] }, "drop short"},
		{"tcp6 header cut, lengths agree", tcp6, func(b []byte) []byte { return set16(4, 19)(b)[:14+59] }, "drop short"},
		{"icmp6 query of 7 bytes", icmp6, func(b []byte) []byte { return set16(4, 7)(b)[:14+47] }, "drop short"},
		{"icmp6 of 3 bytes", icmp6, func(b []byte) []byte { return set16(4, 3)(b)[:14+43] }, "drop short"},
		{"version 5", udp4, set8(0, 0x55), "drop malformed"},
		{"version 6 as v4", udp4, set8(0, 0x65), "drop malformed"},
		{"version 4 as v6", udp6, set8(0, 0x45), "drop malformed"},
		{"ihl 4", udp4, set8(0, 0x44), "drop malformed"},
		{"ihl 15 beyond the length", udp4, set8(0, 0x4f), "drop malformed"},
		{"total length below the header's", udp4, set16(2, 19), "drop malformed"},
		{"total length beyond the frame", udp4, set16(2, 49), "drop malformed"},
		{"payload length beyond the frame", udp6, set16(4, 29), "drop malformed"},
		{"tcp offset 4", tcp4, set8(32, 0x40), "drop malformed"},
		{"tcp offset beyond the packet", tcp4, set8(32, 0xf0), "drop malformed"},
		{"ip checksum", udp4, func(b []byte) []byte { b[14+10] ^= 1; return b }, "drop ip-checksum"},
		{"ip checksum of a fragment", "udp 192.168.1.10 > 198.51.100.9 frag 8+ id 1 len 8", func(b []byte) []byte { b[14+11] ^= 1; return b }, "drop ip-checksum"},
		{"ip checksum beside options", "udp 192.168.1.10:1 > 198.51.100.9:2 opts 4", func(b []byte) []byte { b[14+11] ^= 1; return b }, "up up-options"},
		{"no tcp flags", tcp4, set8(33, 0), "drop tcp-flags"},
		{"tcp FIN alone", tcp4, set8(33, 0x01), "drop tcp-flags"},
		{"tcp FIN PSH URG", tcp4, set8(33, 0x29), "drop tcp-flags"},
		{"tcp SYN RST", tcp4, set8(33, 0x06), "drop tcp-flags"},
		{"tcp SYN RST ACK", tcp4, set8(33, 0x16), "drop tcp-flags"},
		{"tcp SYN PSH URG", tcp4, set8(33, 0x2a), "drop tcp-flags"},
		{"tcp RST PSH", tcp6, set8(53, 0x0c), "drop tcp-flags"},
		{"tcp SYN ECE CWR", tcp6, set8(53, 0xc2), "forward rule"},
		{"tcp FIN PSH URG ACK", tcp6, set8(53, 0x39), "forward no-rule"},
		{"tcp RST", tcp6, set8(53, 0x04), "forward no-rule"},
		{"udp length 7", udp4, set16(24, 7), "drop malformed"},
		{"udp length beyond the packet", udp4, set16(24, 29), "drop malformed"},
		{"udp length below the packet's", udp4, set16(24, 20), "forward rule"},
		{"udp to port 0", "udp 192.168.1.10:1 > 198.51.100.9:0", same, "drop malformed"},
		{"udp to port 0, v6", "udp [fd00:1::10]:1 > [2001:db8:9::1]:0", same, "drop malformed"},
		{"first fragment of udp to port 0", "udp 192.168.1.10:1 > 198.51.100.9:0 frag 0+ id 1 len 8", same, "drop malformed"},
		{"udp from port 0", "udp 192.168.1.10:0 > 198.51.100.9:1", same, "forward rule"},
		{"fragment beyond 65535", "udp 192.168.1.10 > 198.51.100.9 frag 65528 id 1 len 8", same, "drop malformed"},
		{"fragment of 9 bytes with more to come", "udp 192.168.1.10 > 198.51.100.9 frag 8+ id 1 len 9", same, "drop malformed"},
		{"v6 fragment of 9 bytes with more to come", "udp fd00:1::10 > 2001:db8:9::1 frag 8+ id 1 len 9", same, "drop malformed"},
		{"first fragment with 8 bytes of tcp", "tcp 192.168.1.10:1 > 198.51.100.9:2 frag 0+ id 1 len 4", func(b []byte) []byte { return set16(2, 28)(b)[:14+28] }, "drop fragment-short"},
		{"first v6 fragment with 8 bytes of tcp", "tcp [fd00:1::10]:1 > [2001:db8:9::1]:2 frag 0+ id 1 len 4", func(b []byte) []byte { return set16(4, 16)(b)[:14+56] }, "drop fragment-short"},
		{"atomic fragment", "udp [fd00:1::10]:1 > [2001:db8:9::1]:2 ext frag", same, "forward rule"},
		{"two fragment headers", "udp [fd00:1::10]:1 > [2001:db8:9::1]:2 ext frag,frag", same, "drop malformed"},
		{"routing header 0", "udp [fd00:1::10]:1 > [2001:db8:9::1]:2 ext rh0", same, "drop routing-header"},
		{"routing header 0 behind others", "udp [fd00:1::10]:1 > [2001:db8:9::1]:2 ext hop,dst,rh0", same, "drop routing-header"},
		{"routing header 4", "udp [fd00:1::10]:1 > [2001:db8:9::1]:2 ext rh4", same, "forward rule"},
		{"authentication header", "udp [fd00:1::10]:1 > [2001:db8:9::1]:2 ext ah", same, "forward rule"},
		{"8 extension headers", "udp [fd00:1::10]:1 > [2001:db8:9::1]:2 ext dst,dst,dst,dst,dst,dst,dst,dst", same, "up up-options"},
		{"9 extension headers", "udp [fd00:1::10]:1 > [2001:db8:9::1]:2 ext dst,dst,dst,dst,dst,dst,dst,dst,dst", same, "drop extension-chain"},
		{"512 bytes of extension headers", "udp [fd00:1::10]:1 > [2001:db8:9::1]:2 ext long,long", same, "up up-options"},
		{"520 bytes of extension headers", "udp [fd00:1::10]:1 > [2001:db8:9::1]:2 ext long,long,dst", same, "drop extension-chain"},
		{"hop-by-hop first", "udp [fd00:1::10]:1 > [2001:db8:9::1]:2 ext hop", same, "up up-options"},
		{"hop-by-hop later", "udp [fd00:1::10]:1 > [2001:db8:9::1]:2 ext dst,hop", same, "drop malformed"},
		{"chain beyond the packet", "udp [fd00:1::10]:1 > [2001:db8:9::1]:2 ext dst", func(b []byte) []byte { return set16(4, 8)(b)[:14+48] }, "drop short"},
		{"no next header", "59 fd00:1::10 > 2001:db8:9::1 len 3", same, "forward rule"},
		{"esp", "50 fd00:1::10 > 2001:db8:9::1 len 30", same, "forward rule"},
		{"options", "udp 192.168.1.10:1 > 198.51.100.9:2 opts 4", same, "up up-options"},
	} {
		h.forget()
		_, frame := h.arrive("lan", test.packet)
		frame = test.change(frame)
		if !strings.HasPrefix(test.name, "ip checksum") {
			sumHeader(frame)
		}
		for name, hook := range map[string]func(int, []byte) result{"xdp": h.xdp, "tcx": h.tcIn} {
			if h.trunk != nil && test.name == "vlan" {
				continue // its tag belongs to the trunk
			}
			if name == "tcx" && strings.Contains(test.name, "ip header cut") {
				continue // BPF_PROG_TEST_RUN itself refuses such packets
			}
			h.forget()
			r := hook(h.net.lan0, append([]byte(nil), frame...))
			if got := string(r.verdict) + " " + r.reason; got != test.want {
				t.Errorf("%s at %s: got %s, want %s", test.name, name, got, test.want)
			}
		}
	}
}

// Addresses that cannot be a source or a destination.
func testSanity(h *harness) {
	t := h.tb
	h.load("pass")
	for _, test := range []struct{ packet, want string }{
		{"udp 192.168.1.10:1 > 192.168.1.10:1", "drop land"},
		{"udp [fd00:1::10]:1 > [fd00:1::10]:1", "drop land"},
		{"udp 0.0.0.0:1 > 198.51.100.9:1", "drop martian-source"},
		{"udp 0.1.2.3:1 > 198.51.100.9:1", "drop martian-source"},
		{"udp 0.0.0.0:68 > 255.255.255.255:67", "up up-multicast"},
		{"udp 127.0.0.1:1 > 198.51.100.9:1", "drop martian-source"},
		{"udp 224.0.0.1:1 > 198.51.100.9:1", "drop martian-source"},
		{"udp 239.9.9.9:1 > 198.51.100.9:1", "drop martian-source"},
		{"udp 240.0.0.1:1 > 198.51.100.9:1", "drop martian-source"},
		{"udp 255.255.255.255:1 > 198.51.100.9:1", "drop martian-source"},
		{"udp [::1]:1 > [2001:db8:9::1]:1", "drop martian-source"},
		{"udp [ff02::1]:1 > [2001:db8:9::1]:1", "drop martian-source"},
		{"udp [::]:1 > [2001:db8:9::1]:1", "drop martian-source"},
		{"icmp6 :: > ff02::1:ff00:1 type 135 len 16 ttl 255", "up implicit"},
		{"udp [::ffff:1.2.3.4]:1 > [2001:db8:9::1]:1", "drop martian-source"},
		{"udp 192.168.1.1:1 > 198.51.100.9:1", "drop martian-source"},
		{"udp 203.0.113.2:1 > 198.51.100.9:1", "drop martian-source"},
		{"udp [2001:db8:113::2]:1 > [2001:db8:9::1]:1", "drop martian-source"},
		{"udp 192.168.1.10:1 > 0.0.0.0:1", "drop martian-destination"},
		{"udp 192.168.1.10:1 > 0.1.2.3:1", "drop martian-destination"},
		{"udp 192.168.1.10:1 > 127.0.0.1:1", "drop martian-destination"},
		{"udp 192.168.1.10:1 > 240.0.0.1:1", "drop martian-destination"},
		{"udp [fd00:1::10]:1 > [::]:1", "drop martian-destination"},
		{"udp [fd00:1::10]:1 > [::1]:1", "drop martian-destination"},
		{"udp [fd00:1::10]:1 > [::ffff:1.2.3.4]:1", "drop martian-destination"},
		{"udp 192.168.1.10:1 > 224.0.0.251:1", "up up-multicast"},
		{"udp 192.168.1.10:1 > 255.255.255.255:1", "up up-multicast"},
		{"udp [fd00:1::10]:1 > [ff02::fb]:1", "up up-multicast"},
		{"udp [fe80::1]:1 > [2001:db8:9::1]:1", "up local"},
		{"udp [fd00:1::10]:1 > [fe80::9]:1", "up local"},
		{"udp 192.168.1.10:1 > 192.168.1.1:1", "up local"},
		{"udp 192.168.1.10:1 > 192.168.1.255:1", "up local"},
		{"udp [fd00:1::10]:1 > [fd00:1::1]:1", "up local"},
	} {
		for name, hook := range map[string]func(int, []byte) result{"xdp": h.xdp, "tcx": h.tcIn} {
			h.forget()
			r := h.in(hook, "lan", test.packet)
			if got := string(r.verdict) + " " + r.reason; got != test.want {
				t.Errorf("%s at %s: got %s, want %s", test.packet, name, got, test.want)
			}
		}
	}
}
