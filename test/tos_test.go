package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// tosRules set types of service in each way in which pf can.
const tosRules = `
set skip on lo
match out on wan0 inet proto { icmp tcp } from (lan0:network) nat-to (wan0)
match out on wan0 inet6 from (lan0:network) nat-to (wan0)
match in on lan0 proto { icmp icmp6 } set tos ef
match out on wan0 proto tcp to port 5301 set tos lowdelay
match in on lan0 proto udp to port 9 set (tos cs1)
pass
pass quick proto udp to port 9 no state
pass out on wan0 proto tcp to port 5302 scrub (set-tos throughput)
`

// tosLists set them by FreeBSD's lists: of packets of one direction alone.
const tosLists = `
set skip on lo
scrub in on lan0 proto icmp all set-tos ef
scrub out on wan0 proto tcp to port 5302 set-tos throughput
nat on wan0 inet from (lan0:network) to any -> (wan0)
pass
`

//	lan ── ping, iperf3, scapy ──▶ fw: set tos ──▶ wan
//	tcpdump                                        tcpdump
//
// Packets of a connection get the type of service, replies too. The bits of congestion stay,
// and fragments have it as well. Without a state each packet gets it by itself.
func TestSetTOS(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(tosRules)
		b.Tell("pings", tosPings)
		b.Tell("IPv6", func(b *lib.Box) {
			lan, wan := sniff(b, lab.LAN, "ip6"), sniff(b, lab.WAN, "ip6")
			b.Run(lab.LAN, "ping", "-n", "-c", "2", "-Q", "0x22", "-i", "0.1", "-W", "2", wanHost6)
			awaitAll(b, "wan", wan, `class 0xba,[^\n]*echo request`) // 2: capable of ECN
			awaitAll(b, "lan", lan, `class 0xba,[^\n]*echo reply`)
			b.Run(lab.LAN, "ping", "-n", "-c", "1", "-s", "3000", "-W", "2", wanHost6)
			awaitAll(b, "wan", wan, `class 0xb8,[^\n]*:0\|`, `class 0xb8,[^\n]*:1448\|`)
			lan.Interrupt()
			wan.Interrupt()
		})
		b.Tell("TCP", tosTCP)
		b.Tell("no state", func(b *lib.Box) {
			wan := sniff(b, lab.WAN, "udp or ip[6:2] & 0x1fff != 0")
			b.Scapy(lab.LAN, fmt.Sprintf("send(fragment(IP(dst=%q, tos=0x1d, id=7)/UDP(sport=4, dport=9)/('x' * 1800), 1000), verbose=0)\n", wanHost))
			awaitAll(b, "wan", wan, `tos 0x21,[^\n]*offset 0, flags \[\+\]`, `tos 0x21,[^\n]*offset 1000, flags \[none\]`)
			wan.Interrupt()
		})
	})
}

// The same by FreeBSD's lists, except that replies keep theirs.
func TestSetTOSLists(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.WeirRun(tosLists)
		lan, wan := sniff(b, lab.LAN, "icmp"), sniff(b, lab.WAN, "icmp")
		b.Run(lab.LAN, "ping", "-n", "-c", "2", "-Q", "0x21", "-i", "0.1", "-W", "2", wanHost)
		awaitAll(b, "wan", wan, `tos 0xb9,[^\n]*\n[^\n]*echo request`, `tos 0xb9,[^\n]*\n[^\n]*echo reply`) // Linux answers with what came
		awaitAll(b, "lan", lan, `tos 0x21,[^\n]*\n[^\n]*echo request`, `tos 0xb9,[^\n]*\n[^\n]*echo reply`)
		lan.Interrupt()
		wan.Interrupt()
		tosStream(b, 5302, `tos 0x8, [^\n]*\n[^\n]*Flags \[S\]`, `tos 0x0, [^\n]*\n[^\n]*Flags \[S\.\]`)
	})
}

func tosPings(b *lib.Box) {
	lan, wan := sniff(b, lab.LAN, "icmp"), sniff(b, lab.WAN, "icmp")
	b.Run(lab.LAN, "ping", "-n", "-c", "2", "-Q", "0x21", "-i", "0.1", "-W", "2", wanHost)
	awaitAll(b, "wan", wan, `tos 0xb9,[^\n]*\n[^\n]*echo request`)
	awaitAll(b, "lan", lan, `tos 0x21,[^\n]*\n[^\n]*echo request`, `tos 0xb9,[^\n]*\n[^\n]*echo reply`)
	if states := b.Weir("states", "-v", "proto", "icmp"); !strings.Contains(states, "scrub (set-tos 0xb8)") {
		b.Errorf("weir states -v does not show the type of service:\n%s", states)
	}
	b.Run(lab.LAN, "ping", "-n", "-c", "1", "-s", "3000", "-W", "2", wanHost)
	awaitAll(b, "wan", wan, `tos 0xb8,[^\n]*offset 1480,`, `tos 0xb8,[^\n]*offset 2960,`)
	awaitAll(b, "lan", lan, `tos 0xb8,[^\n]*offset 1480,`)
	lan.Interrupt()
	wan.Interrupt()
}

func tosTCP(b *lib.Box) {
	tosStream(b, 5301, `tos 0x10,[^\n]*\n[^\n]*Flags \[S\]`, `tos 0x10,[^\n]*\n[^\n]*Flags \[S\.\]`)
	tosStream(b, 5302, `tos 0x8,[^\n]*\n[^\n]*Flags \[S\]`, `tos 0x8,[^\n]*\n[^\n]*Flags \[S\.\]`)
}

// tosStream runs iperf3 and looks at the SYN at wan, and at its reply at the LAN.
func tosStream(b *lib.Box, port uint16, syn, reply string) {
	filter := fmt.Sprintf("tcp port %d", port)
	lan, wan := sniff(b, lab.LAN, filter), sniff(b, lab.WAN, filter)
	server := b.Listen(lab.WAN, port, "iperf3", "-s", "-1", "-p", fmt.Sprint(port))
	b.Run(lab.LAN, "iperf3", "-c", wanHost, "-p", fmt.Sprint(port), "-n", "2M")
	server.Wait(10*time.Second, 0)
	awaitAll(b, "wan", wan, syn)
	awaitAll(b, "lan", lan, reply)
	lan.Interrupt()
	wan.Interrupt()
}
