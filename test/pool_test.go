package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

const poolConf = `set skip on lo
match in on wan0 inet proto tcp to (wan0:0) port 8080 rdr-to { 192.168.1.10, 192.168.1.20 } port 80 sticky-address
match out on wan0 inet proto tcp from (lan0:network) to port 81 nat-to { 203.0.113.2, 203.0.113.20 } source-hash
match out on wan0 inet proto tcp from (lan0:network) to port 82 nat-to { 203.0.113.2, 203.0.113.20 } random
match out on wan0 inet proto tcp from (lan0:network) to port 83 nat-to { 203.0.113.2 weight 2, 203.0.113.20 }
match on wan0 inet6 from fd00:1::/64 to any binat-to 2001:db8:f::/64
pass
`

//	lan (two servers) ──── fw ──── wan (two clients)
//
// With sticky-address a client keeps its server, and the next client gets the other one, until
// the client is forgotten. Of the addresses of a translation, source-hash takes one for a source, random takes
// all, and a weight says how often each is taken.
func TestPools(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.Address(lab.LAN, "eth0", "192.168.1.20/24")
		b.Address(lab.FW, "wan0", "203.0.113.20/24")
		b.Address(lab.WAN, "eth0", "203.0.113.9/24")
		b.WeirRun(poolConf)
		b.Listen(lab.LAN, 80, "socat", "TCP4-LISTEN:80,fork,reuseaddr", "SYSTEM:read x; echo $SOCAT_SOCKADDR")
		ask := func(host, from, to string, port int) string {
			b.Helper()
			return b.Run(host, "sh", "-c", fmt.Sprintf("echo hello | socat -t 10 - TCP4:%s:%d,bind=%s", to, port, from))
		}
		servers := map[string]string{}
		for range 3 {
			for _, client := range []string{wanHost, "203.0.113.9"} {
				server := ask(lab.WAN, client, fwWAN, 8080)
				if before := servers[client]; before != "" && server != before {
					b.Errorf("%s reached %q, and %q before", client, server, before)
				}
				servers[client] = server
			}
		}
		if servers[wanHost] == servers["203.0.113.9"] {
			b.Errorf("both clients reached %q", servers[wanHost])
		}
		for _, client := range []string{wanHost, "203.0.113.9"} {
			want := fmt.Sprintf("%s -> %s ( states ", client, strings.TrimSpace(servers[client]))
			if got := b.Weir("pfctl", "-s", "Sources"); !strings.Contains(got, want) {
				b.Errorf("pfctl -s Sources lacks %q:\n%s", want, got)
			}
		}
		if got := b.Weir("pfctl", "-K", "203.0.113.9", "-K", strings.TrimSpace(servers[wanHost])); got != "killed 0 src nodes from 1 sources and 1 destinations\n" {
			b.Errorf("pfctl -K of what another client keeps says %q", got)
		}
		if got := b.Weir("pfctl", "-K", "203.0.113.9", "-K", strings.TrimSpace(servers["203.0.113.9"])); got != "killed 1 src nodes from 1 sources and 1 destinations\n" {
			b.Errorf("pfctl -K says %q", got)
		}
		if server := ask(lab.WAN, "203.0.113.9", fwWAN, 8080); server != servers[wanHost] {
			b.Errorf("a client that was forgotten reached %q, not the next server", server)
		}
		if server := ask(lab.WAN, wanHost, fwWAN, 8080); server != servers[wanHost] {
			b.Errorf("%s lost its server when another client was forgotten", wanHost)
		}
		if got := b.Weir("flush", "sources"); got != "2 sources forgotten\n" {
			b.Errorf("flush sources says %q", got)
		}
		for port, want := range map[int]func(first, second int) bool{
			81: func(first, second int) bool { return first == 0 || second == 0 },
			82: func(first, second int) bool { return first > 0 && second > 0 },
			83: func(first, second int) bool { return first == 2*second },
		} {
			b.Listen(lab.WAN, uint16(port), "socat", fmt.Sprintf("TCP4-LISTEN:%d,fork,reuseaddr", port), "SYSTEM:read x; echo $SOCAT_PEERADDR")
			seen := map[string]int{}
			for range 12 {
				seen[ask(lab.LAN, lanHost, wanHost, port)]++
			}
			if first, second := seen["203.0.113.2\n"], seen["203.0.113.20\n"]; first+second != 12 || !want(first, second) {
				b.Errorf("port %d: the server saw %v", port, seen)
			}
		}
		prefixes(b)
	})
}

// prefixes sends through a translation of one IPv6 network into another, in both directions:
// each host keeps the rest of its address. A quoted packet is translated back, so that traceroute
// sees both hops.
func prefixes(b *lib.Box) {
	b.Helper()
	const outside = "2001:db8:f::10" // of lanHost6
	b.IP(lab.WAN, "route add 2001:db8:f::/64 via "+fwWAN6)
	for _, way := range []string{"-R", "--zerocopy"} {
		if said := iperfThrough(b, lab.LAN, wanHost6, lab.WAN, way); !strings.Contains(said, "Accepted connection from "+outside+",") {
			b.Errorf("the server did not see %s:\n%s", outside, said)
		}
	}
	if said := iperfThrough(b, lab.WAN, outside, lab.LAN, "-u", "-b", "20M"); !strings.Contains(said, "Accepted connection from "+wanHost6) {
		b.Errorf("from outside:\n%s", said)
	}
	b.Ping(lab.WAN, outside, 3)
	b.Run(lab.LAN, "ping", "-n", "-c", "2", "-i", "0.1", "-W", "2", "-s", "3000", wanHost6)
	if hops := hops(b.Run(lab.WAN, "traceroute", "-6", "-n", "-q", "1", "-w", "2", "-m", "4", outside)); len(hops) != 2 || hops[1] != outside {
		b.Errorf("traceroute went by %q", hops)
	}
}

const leastConf = `set skip on lo
pass in on wan0 inet proto tcp to (wan0:0) port 8080 rdr-to { 192.168.1.10, 192.168.1.20 } port 80 least-states
pass out
`

//	lan (two servers) ──── fw ──── wan (clients that stay connected)
//
// A client gets the server with the fewest connections. When those of one have ended, it gets
// the next ones: also after a reload, by tables of another size, and without the daemon.
func TestLeastStates(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.Address(lab.LAN, "eth0", "192.168.1.20/24")
		daemon := b.WeirRun(leastConf)
		b.Listen(lab.LAN, 80, "socat", "-t", "30", "TCP4-LISTEN:80,fork,reuseaddr", "EXEC:cat")
		connect := func(count int) {
			b.Helper()
			for range count {
				before := len(b.States("port", "8080"))
				b.Start(lab.WAN, "socat", "-u", "TCP4:"+fwWAN+":8080", "OPEN:/dev/null")
				b.Until(5*time.Second, "the client is connected", func() bool { return len(b.States("port", "8080", "phase", "tcp.established")) > before })
			}
		}
		expect := func(when string, first, second int) {
			b.Helper()
			if a, c := len(b.States("port", "8080", "nat", "192.168.1.10")), len(b.States("port", "8080", "nat", "192.168.1.20")); a != first || c != second {
				b.Errorf("%s: the servers have %d and %d connections, want %d and %d", when, a, c, first, second)
			}
		}
		leave := func(server string) {
			b.Helper()
			b.Weir("kill", "port", "8080", "nat", server)
			time.Sleep(time.Second) // the garbage collection releases them
		}
		connect(4)
		expect("at first", 2, 2)
		leave("192.168.1.10")
		connect(2)
		expect("after those of one have ended", 2, 2)
		b.Weir("load", b.Rules("set limit states 5000\n"+leastConf+"pass in on lan0\n"))
		leave("192.168.1.20")
		connect(1)
		expect("after a load", 2, 1)
		daemon.Kill()
		connect(3)
		expect("without the daemon", 3, 3)
	})
}

const natInConf = `set skip on lo
block
pass in on lan0 inet from (lan0:network) to ! (lan0) nat-to (wan0)
pass in on lan0 inet6 from (lan0:network) to ! (lan0) nat-to (wan0)
pass out on wan0 from (wan0)
`

// lan ───── fw ───── wan
// nat-to where packets come in; the way out sees the new source
func TestNatToOfIncoming(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(natInConf)
		for to, own := range map[string]string{wanHost: fwWAN, wanHost6: fwWAN6} {
			b.Ping(lab.LAN, to, 5)
			for _, way := range []string{"-R", "--zerocopy"} {
				if said := iperfThrough(b, lab.LAN, to, lab.WAN, way); !strings.Contains(said, "Accepted connection from "+own) {
					b.Errorf("the server did not see %s:\n%s", own, said)
				}
			}
			b.Run(lab.LAN, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", "-s", "3000", to)
		}
		if hops := hops(b.Run(lab.LAN, "traceroute", "-n", "-q", "1", "-w", "2", "-m", "4", wanHost)); len(hops) != 2 || hops[1] != wanHost {
			b.Errorf("traceroute went by %q", hops)
		}
	})
}
