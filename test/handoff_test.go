package test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/test/lib"
)

// handUpRules translate all that the LAN sends, and allow options.
const handUpRules = `
set skip on lo
match out on wan0 inet from (lan0:network) nat-to (wan0)
match out on wan0 inet6 from (lan0:network) nat-to (wan0)
block all
match in on lan0 inet to 203.0.113.2 rdr-to 198.51.100.9
match in on lan0 inet6 to 2001:db8:113::2 rdr-to 2001:db8:9::9
pass in on lan0 allow-opts label "in"
pass out on wan0 allow-opts label "out"
block out on wan0 to { 239.9.9.9, ff0e::9 } label "unwanted"
`

//	lan ───────── fw ───────── wan ───────── far
//	              weir, NAT    routes
//
// The stack's work for weir also applies to translated packets, in both families. Each
// packet meets the rules and is counted once. The stack's errors are about the packet as
// the client sent it.
func TestHandOff(t *testing.T) {
	weir.BothFar(t, func(b *lib.Box) {
		b.WeirRun(handUpRules)
		for _, part := range []struct {
			name string
			tell func(*lib.Box)
		}{
			{"traceroute", everyTraceroute},
			{"traceroute to a redirected address", redirectedTraceroute},
			{"neighbour", neighbourIsUnresolved},
			{"options", optionsAreKept},
			{"multicast", multicast},
			{"mtu of a route", mtuOfARoute},
			{"mtu beyond", mtuBeyond},
			{"mtu", mtuOfTheBox},
		} {
			b.Tell(part.name, part.tell)
		}
	})
}

//	lan ═══ pings that record their route ═══▶ fw ── rdr-to far, nat-to ──▶ wan ── far
//	                                           9 loads
//
// The stack forwards packets with options. Both ends of these are translated, so TCX
// egress finds each of them by its record. Loads keep the records: no packet is lost.
func TestLoadsLoseNoHandOff(t *testing.T) {
	weir.BothFar(t, func(b *lib.Box) {
		rules, other, anew := loads(b, handUpRules)
		b.WeirRun(rules)
		b.Ping(lab.LAN, fwWAN, 2)
		handed := b.Packets("lan0", reason.UpOptions)
		flood := b.FloodEvery(lab.LAN, fwWAN, time.Millisecond)
		flood.RecordRoute()
		for range 3 {
			b.Weir("load", other)
			b.Weir("load", anew)
			b.Weir("load", rules)
		}
		flood.AllAnswered(1000)
		if n := b.Packets("lan0", reason.UpOptions) - handed; n < 1000 {
			b.Errorf("only %d packets went through the stack", n)
		}
	})
}

//	lan ── fw ── wan ── far
//	traceroute, -I, -T: 1. fw  2. wan  3. far
//
// The box replies with its inner address to every kind of traceroute.
func everyTraceroute(b *lib.Box) {
	for _, how := range [][]string{nil, {"-I"}, {"-T", "-p", "9"}} {
		for _, test := range [][]string{{fwLAN, wanHost, lib.FarHost}, {fwLAN6, wanHost6, lib.FarHost6}} {
			args := append([]string{"-n", "-q", "1", "-w", "2", "-m", "5"}, how...)
			out := b.Run(lab.LAN, "traceroute", append(args, test[2])...)
			if got := hops(out); fmt.Sprint(got) != fmt.Sprint(test) {
				b.Errorf("traceroute %v to %s went by %q, want %q:\n%s", how, test[2], got, test, out)
			}
		}
	}
}

//	lan ── to fw's outer address ──▶ fw ── rdr-to far, nat-to ──▶ wan ── far
//
// If both addresses are translated, errors name the address that the client has asked
// for. Otherwise they would not reach its socket.
func redirectedTraceroute(b *lib.Box) {
	for _, how := range [][]string{nil, {"-I"}, {"-T", "-p", "9"}} {
		for _, test := range [][]string{{fwLAN, wanHost, fwWAN}, {fwLAN6, wanHost6, fwWAN6}} {
			args := append([]string{"-n", "-q", "1", "-w", "2", "-m", "5"}, how...)
			out := b.Run(lab.LAN, "traceroute", append(args, test[2])...)
			if got := hops(out); fmt.Sprint(got) != fmt.Sprint(test) {
				b.Errorf("traceroute %v to %s went by %q, want %q:\n%s", how, test[2], got, test, out)
			}
		}
	}
}

//	lan ═══ 20 pings at once ═══▶ fw ── who has wan? ──▶ wan
//
// Packets to an unresolved neighbour wait in the kernel, which loses none of them; the
// same for the replies.
func neighbourIsUnresolved(b *lib.Box) {
	const pings = 20
	for _, test := range []struct{ to, flush string }{
		{wanHost, "wan0"}, {wanHost6, "wan0"}, {wanHost, "lan0"}, {wanHost6, "lan0"},
	} {
		before := b.Rule(`label "in"`)
		b.Run(lab.FW, "ip", "neighbour", "flush", "dev", test.flush)
		out := b.Run(lab.LAN, "ping", "-n", "-c", fmt.Sprint(pings), "-l", fmt.Sprint(pings), "-i", "0.1", "-W", "3", test.to)
		if !strings.Contains(out, fmt.Sprintf(" %d received", pings)) {
			b.Errorf("with no neighbour known at %s, %s:\n%s", test.flush, test.to, out)
		}
		if got := b.Rule(`label "in"`).Packets - before.Packets; got != 2*pings {
			b.Errorf("%s, %s: %d pings and answers counted as %d packets", test.flush, test.to, pings, got)
		}
	}
}

//	lan ── ping -R ──▶ fw ──▶ wan          lan ── hop-by-hop ──▶ fw ──▶ wan
//
// The stack processes options that a rule allows, and the packets arrive translated. The
// recorded route names the box.
func optionsAreKept(b *lib.Box) {
	out := b.Run(lab.LAN, "ping", "-n", "-R", "-c", "1", "-W", "2", wanHost)
	if !strings.Contains(out, "1 received") || !strings.Contains(out, fwWAN) {
		b.Errorf("ping -R:\n%s", out)
	}
	before := b.Rule(`label "in"`)
	b.Scapy(lab.LAN, `
padding = IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(4))])
send(IPv6(dst="`+wanHost6+`")/padding/ICMPv6EchoRequest(id=77, data=b"x"*9), verbose=0)
`)
	b.Until(5*time.Second, "the packet with a hop-by-hop header is answered", func() bool {
		for _, s := range b.States("host", wanHost6) {
			if s.Src.Port == 77 && s.Src.NewAddr.String() == fwWAN6 && s.Src.Packets == 1 && s.Dst.Packets == 1 {
				return true
			}
		}
		return false
	})
	if got := b.Rule(`label "in"`).Packets - before.Packets; got != 2 {
		b.Errorf("a packet with a hop-by-hop header and its answer count as %d packets", got)
	}
}

//	lan ── to 239.1.2.3 ──▶ fw ── the stack routes it ──▶ wan
//
// Multicast that the stack routes meets the rules where it enters and where it leaves,
// and is translated there. What the out rules block does not leave.
func multicast(b *lib.Box) {
	port := uint16(5000)
	for _, test := range []struct{ source, group, unwanted, own, proto, join string }{
		{lanHost, "239.1.2.3", "239.9.9.9", fwWAN, "UDP4", "ip-add-membership=%s:eth0"},
		{lanHost6, "ff0e::7", "ff0e::9", fwWAN6, "UDP6", "ipv6-join-group=[%s]:eth0"},
	} {
		in, out := b.Rule(`label "in"`), b.Rule(`label "out"`)
		b.RouteMulticast(lab.FW, test.source, "lan0", "wan0", test.group, test.unwanted)
		for _, group := range []string{test.group, test.unwanted} {
			port++
			join := fmt.Sprintf("%s-RECVFROM:%d,fork,"+test.join, test.proto, port, group)
			heard := b.Listen(lab.WAN, port, "socat", "-t", "10", "-u", join, "SYSTEM:echo $SOCAT_PEERADDR; cat")
			to := fmt.Sprintf("%s-DATAGRAM:[%s]:%d,setsockopt-int=41:18:8", test.proto, group, port)
			if test.proto == "UDP4" {
				to = fmt.Sprintf("UDP4-DATAGRAM:%s:%d,ip-multicast-ttl=8", group, port)
			}
			// one socat per datagram: one that starts late would merge two
			// lines
			b.Run(lab.LAN, "sh", "-c", "for line in one two; do echo $line | socat -u - "+to+"; done")
			if group == test.unwanted {
				if r := b.Rule("to " + group); r.Packets != 2 || heard.Said() != "" {
					b.Errorf("what is blocked on its way out counts %d packets, and wan heard %q", r.Packets, heard.Said())
				}
				continue
			}
			b.Until(5*time.Second, "wan hears both packets", func() bool {
				return strings.Contains(heard.Said(), "one") && strings.Contains(heard.Said(), "two")
			})
			if froms := addresses(heard.Said()); len(froms) != 2 || froms[0] != test.own || froms[1] != test.own {
				b.Errorf("what was sent to %s did not come from %s:\n%s", group, test.own, heard.Said())
			}
		}
		if got := b.Rule(`label "in"`).Packets - in.Packets; got != 4 {
			b.Errorf("4 packets that came in are counted as %d", got)
		}
		if got := b.Rule(`label "out"`).Packets - out.Packets; got != 2 {
			b.Errorf("2 packets that left are counted as %d", got)
		}
	}
}

// addresses returns those lines of a text that hold an address, in its short form.
func addresses(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if a, err := netip.ParseAddr(strings.Trim(line, "[]\n")); err == nil {
			all = append(all, a.String())
		}
	}
	return all
}

//	lan ───── fw ──(route to far: 1360)── wan ── far
//
// If the box's route to a host has a smaller MTU than its link, locked or not, the stack tells the client, and cuts what
// may be cut. Other hosts by the same gateway get whole packets meanwhile.
func mtuOfARoute(b *lib.Box) {
	for _, mtu := range []string{"mtu lock 1360", "mtu 1360"} {
		narrow := []string{"route add " + lib.FarHost + "/32 via " + wanHost + " " + mtu, "-6 route add " + lib.FarHost6 + "/128 via " + wanHost6 + " " + mtu}
		b.IP(lab.FW, narrow...)
		for _, to := range []string{wanHost, wanHost6} {
			b.Run(lab.LAN, "ping", "-n", "-M", "do", "-c", "1", "-s", "1400", "-W", "2", to)
		}
		tooBig(b, lib.FarHost, fwLAN, "mtu = 1360")
		tooBig(b, lib.FarHost6, fwLAN6, "mtu=1360")
		b.Run(lab.LAN, "ping", "-n", "-M", "dont", "-c", "2", "-i", "0.1", "-s", "1400", "-W", "2", lib.FarHost)
		for _, to := range []string{lib.FarHost, lib.FarHost6} {
			bulk(b, lib.Far, to)
		}
		for _, route := range narrow {
			b.IP(lab.FW, strings.Replace(route, " add ", " del ", 1))
		}
		b.IP(lab.LAN, "route flush cache", "-6 route flush cache")
		for _, to := range []string{lib.FarHost, lib.FarHost6} {
			b.Until(5*time.Second, "whole packets go to "+to, func() bool { // weir hears of a route a moment later
				b.IP(lab.LAN, "route flush cache", "-6 route flush cache")
				_, err := b.Try(lab.LAN, "ping", "-n", "-M", "do", "-c", "1", "-s", "1400", "-W", "1", to)
				return err == nil
			})
		}
	}
}

//	lan ───── fw ───── wan ──(1300)── far
//
// If a router on the way has a smaller MTU, its errors reach the client, and TCP in both
// directions goes on with smaller segments.
func mtuBeyond(b *lib.Box) {
	b.Run(lab.WAN, "ip", "link", "set", "far0", "mtu", "1300")
	b.Run(lib.Far, "ip", "link", "set", "eth0", "mtu", "1300")
	tooBig(b, lib.FarHost, wanHost, "mtu = 1300")
	tooBig(b, lib.FarHost6, wanHost6, "mtu=1300")
	for _, to := range []string{lib.FarHost, lib.FarHost6} {
		bulk(b, lib.Far, to)
	}
}

//	lan ───── fw ──(1400)── wan
//
// If the box's own link is the smaller one, the stack tells the client, and fragments
// what may be fragmented. Each packet counts once.
func mtuOfTheBox(b *lib.Box) {
	b.Run(lab.FW, "ip", "link", "set", "wan0", "mtu", "1400")
	b.Run(lab.WAN, "ip", "link", "set", "eth0", "mtu", "1400")
	tooBig(b, wanHost6, fwLAN6, "mtu=1400")
	before := b.Rule(`label "in"`)
	b.Run(lab.LAN, "ping", "-n", "-M", "dont", "-c", "2", "-i", "0.1", "-s", "1400", "-W", "2", wanHost)
	if got := b.Rule(`label "in"`).Packets - before.Packets; got != 2+2*2 { // wan sends its replies in two pieces
		b.Errorf("two pings that the stack fragments, and their answers, count as %d packets", got)
	}
	tooBig(b, wanHost, fwLAN, "mtu = 1400")
	for _, to := range []string{wanHost, wanHost6} {
		bulk(b, lab.WAN, to)
	}
}

// tooBig makes the LAN send a packet that may not be fragmented. ping's output shows who
// reports it, and what.
func tooBig(b *lib.Box, to, by, mtu string) {
	b.Helper()
	var out string
	b.Until(5*time.Second, "a router says "+mtu, func() bool { // weir hears of a new MTU a moment later
		out, _ = b.Try(lab.LAN, "ping", "-n", "-M", "do", "-c", "1", "-s", "1400", "-W", "1", to) //nolint:errcheck // its output shows the result
		return strings.Contains(strings.ToLower(out), mtu)
	})
	if !strings.Contains(strings.ToLower(out), "from "+by+" icmp_seq=1") {
		b.Errorf("ping of a packet that is too big said\n%s", out)
	}
}

// bulk sends TCP from the LAN, and back.
func bulk(b *lib.Box, host, to string) {
	b.Helper()
	for _, way := range []string{"-4", "-R"} {
		if way == "-4" && strings.Contains(to, ":") {
			way = "-6"
		}
		server := b.Listen(host, 5201, "iperf3", "-s", "-1")
		b.Run(lab.LAN, "iperf3", "-c", to, way, "-n", "4M")
		server.Wait(10*time.Second, 0)
	}
}
