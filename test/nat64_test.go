package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/test/lib"
)

// familyRules translate what the IPv6-only lan sends to 64:ff9b::/96, and what comes from
// IPv4 for port 8081 of the box. Nothing else passes; no rule lets anything out.
const familyRules = `
set skip on lo
block
pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0)
pass in on wan0 inet proto { tcp, udp } to (wan0) port { 8081, 5202 } af-to inet6 from 2001:db8:46::/96 to fd00:1::10
`

// to64 is the wan's IPv4 address as the lan knows it.
const to64 = "64:ff9b::" + wanHost

//	lan, without IPv4 ── curl, iperf3, ping ──▶ fw: af-to ──▶ wan, without IPv6
//
// and back: what the wan sends to the box goes to a server in the lan.
func TestNAT64(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.IP(lab.LAN, "-4 address flush dev eth0")
		b.IP(lab.WAN, "-6 address flush dev eth0")
		b.WeirRun(familyRules)
		b.Tell("to IPv4", toIPv4)
		b.Tell("to IPv6", toIPv6)
		b.Tell("fragments", fragmentsToIPv4)
		b.Tell("one port for all destinations", onePortForIPv4)
		b.Tell("bound", boundFamilies)
	})
}

func toIPv4(b *lib.Box) {
	b.ServeHello(lab.WAN, 8080)
	b.Ping(lab.LAN, to64, 3)
	if out := b.Run(lab.LAN, "curl", "-s", "-m", "10", "http://["+to64+"]:8080/"); strings.TrimSpace(out) != "hello" {
		b.Errorf("curl says %q", out)
	}
	b.Listen(lab.WAN, 5201, "iperf3", "-4", "-s")
	for _, args := range [][]string{{"-n", "20M"}, {"-n", "20M", "-R"}, {"-u", "-b", "20M", "-t", "1", "-l", "1200"}} {
		b.Run(lab.LAN, "iperf3", append([]string{"-6", "-c", to64}, args...)...)
	}
	states := b.Weir("states", "proto", "tcp")
	if !strings.Contains(states, wanHost+":8080") || !strings.Contains(states, "64:ff9b::") {
		b.Errorf("weir states lacks one of the two families:\n%s", states)
	}
}

// With endpoint-independent a UDP source has one port outside for all destinations, as RFC 6146
// asks of NAT64.
func onePortForIPv4(b *lib.Box) {
	b.Weir("load", b.Rules("set skip on lo\npass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0) endpoint-independent\n"))
	var ports []string
	for _, port := range []uint16{6001, 6002, 6003} {
		b.Listen(lab.WAN, port, "socat", fmt.Sprintf("UDP4-RECVFROM:%d,fork", port), "SYSTEM:echo $SOCAT_PEERPORT")
		var seen string
		b.Until(20*time.Second, "the server says which port it sees", func() bool {
			seen = b.Run(lab.LAN, "sh", "-c", fmt.Sprintf("echo x | socat -t 1 - UDP6:[%s]:%d,bind=:5001", to64, port))
			return seen != ""
		})
		ports = append(ports, seen)
	}
	if ports[1] != ports[0] || ports[2] != ports[0] {
		b.Errorf("the servers saw the ports %q", ports)
	}
}

func toIPv6(b *lib.Box) {
	b.Listen(lab.LAN, 8081, "socat", "-t", "60", "TCP6-LISTEN:8081,fork,reuseaddr", "SYSTEM:echo $SOCAT_PEERADDR")
	out := b.Run(lab.WAN, "sh", "-c", "socat -t 60 - TCP4:"+fwWAN+":8081 </dev/null")
	if want := "2001:0db8:0046:0000:0000:0000:"; !strings.Contains(out, want) {
		b.Errorf("the server saw %q, not %s…", out, want)
	}
	b.Listen(lab.LAN, 5202, "iperf3", "-6", "-s", "-p", "5202")
	for _, args := range [][]string{{"-n", "20M"}, {"-n", "20M", "-R"}, {"-u", "-b", "20M", "-t", "1", "-l", "1200"}} {
		b.Run(lab.WAN, "iperf3", append([]string{"-4", "-c", fwWAN, "-p", "5202"}, args...)...)
	}
}

// Datagrams that are larger than the MTU go both ways. The first reply does not arrive: with
// IPv6's headers its fragments are too long, and the box says so. The server then cuts
// smaller ones.
func fragmentsToIPv4(b *lib.Box) {
	b.Start(lab.WAN, "socat", "UDP4-RECVFROM:9000,fork", "PIPE")
	for n := range 4 {
		sent := strings.Repeat(fmt.Sprint(n), 4000)
		out := b.Run(lab.LAN, "sh", "-c", fmt.Sprintf("sleep 0.5; printf %s | socat -b 8000 -t 3 - UDP6:[%s]:9000", sent, to64))
		if n > 0 && out != sent {
			b.Errorf("datagram %d: %d bytes come back, not %d", n, len(out), len(sent))
		}
	}
}

//	lan ── ping ──▶ fw: af-to ── wan0 ──▶ wan
//	lan ◀─────────  fw        ◀── wan1 ── wan
//
// If the states of af-to are bound, replies that come by another interface than the one by which
// the packets left meet the rules there. If they float, they are translated.
func boundFamilies(b *lib.Box) {
	b.Wire("wan1", lab.WAN, "eth1")
	b.Address(lab.FW, "wan1", "10.8.0.1/24")
	b.Address(lab.WAN, "eth1", "10.8.0.2/24")
	for _, policy := range []string{"if-bound", "floating"} {
		b.Weir("load", b.Rules("set state-policy "+policy+familyRules+"pass in on wan1 inet to 10.8.0.1\n"))
		b.AwaitHook("wan1")
		b.Ping(lab.WAN, "10.8.0.1", 1)
		b.Ping(lab.LAN, to64, 2)
		b.IP(lab.WAN, "route add "+fwWAN+"/32 via 10.8.0.1")
		blocked := b.Packets("wan1", reason.Block)
		out, err := b.Try(lab.LAN, "ping", "-n", "-c", "3", "-i", "0.2", "-W", "1", to64)
		if answered := err == nil; answered != (policy == "floating") {
			b.Errorf("%s: ping is answered by the other interface: %t\n%s", policy, answered, out)
		}
		if now := b.Packets("wan1", reason.Block); (now > blocked) != (policy == "if-bound") {
			b.Errorf("%s: %d replies were blocked at wan1", policy, now-blocked)
		}
		b.IP(lab.WAN, "route delete "+fwWAN+"/32")
	}
}

// familyErrorRules translate from and to far: both hosts know each other in their own family
// only. Nothing else passes, ICMP errors neither.
const familyErrorRules = `
set skip on lo
block
pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0)
pass in on lan0 inet to 192.0.2.9 af-to inet6 from (wan0) to 2001:db8:9::9
pass in on lan0 inet to 192.0.2.7 af-to inet6 from (wan0) to 2001:db8:113::77
pass in on wan0 inet6 to 64:ff9b:1::/96 af-to inet from (lan0)
`

// The addresses that they know.
const (
	farAs6 = "64:ff9b::c633:6409"
	farAs4 = "192.0.2.9"
	lanAs6 = "64:ff9b:1::c0a8:10a"
)

//	lan ── fw: af-to ──▶ wan, a router ──▶ far
//	   ◀── errors of wan and far, in lan's family
//
// and back, from far to lan.
func TestNAT64Errors(t *testing.T) {
	weir.BothFar(t, func(b *lib.Box) {
		b.IP(lab.WAN, "-6 route add 64:ff9b:1::/96 via "+fwWAN6)
		b.WeirRun(familyErrorRules)
		b.Tell("traceroute", familyTraceroute)
		b.Tell("refused", familyRefused)
		b.Tell("neighbour", familyNeighbour)
		b.Tell("nobody there", familyUnreachable)
		b.Tell("path MTU", familyPathMTU)
		b.Tell("own MTU", familyOwnMTU)
	})
}

// Routers in IPv4 have addresses behind the prefix, those in IPv6 the destination's.
func familyTraceroute(b *lib.Box) {
	for _, how := range [][]string{nil, {"-I"}, {"-T", "-p", "9"}} {
		for _, test := range []struct {
			from string
			hops []string
		}{
			{lab.LAN, []string{fwLAN6, "64:ff9b::cb00:7101", farAs6}},
			{lab.LAN, []string{fwLAN, farAs4, farAs4}},
			{lib.Far, []string{"2001:db8:9::1", fwWAN6, lanAs6}},
		} {
			args := append([]string{"-n", "-q", "1", "-w", "2", "-m", "5"}, how...)
			out := b.Run(test.from, "traceroute", append(args, test.hops[2])...)
			if got := hops(out); fmt.Sprint(got) != fmt.Sprint(test.hops) {
				b.Errorf("traceroute %v from %s went by %q, want %q:\n%s", how, test.from, got, test.hops, out)
			}
		}
	}
}

// Who sends to a closed port hears of it at once.
func familyRefused(b *lib.Box) {
	for _, test := range []struct{ from, to string }{
		{lab.LAN, "UDP6:[" + farAs6 + "]:9"}, {lab.LAN, "UDP4:" + farAs4 + ":9"}, {lib.Far, "UDP6:[" + lanAs6 + "]:9"},
	} {
		if _, err := b.Try(test.from, "sh", "-c", "echo | socat -t 5 - "+test.to); err == nil || !strings.Contains(err.Error(), "refused") {
			b.Errorf("%s to %s: %v", test.from, test.to, err)
		}
	}
}

// The box does not know its neighbour's address when an error comes. XDP leaves that to TCX.
func familyNeighbour(b *lib.Box) {
	for _, to := range []string{farAs6, farAs4} {
		before := b.Packets("wan0", reason.UpNeighbour)
		b.Until(20*time.Second, "an error waits for the neighbour", func() bool {
			b.IP(lab.FW, "neighbour flush dev lan0")
			out := b.Run(lab.LAN, "traceroute", "-n", "-q", "1", "-w", "2", "-f", "2", "-m", "2", to)
			if strings.Contains(out, "*") {
				b.Errorf("no error came back:\n%s", out)
			}
			return b.Packets("wan0", reason.UpNeighbour) > before
		})
	}
}

// The box's kernel does not find the host to which a translated packet goes. It tells the box's
// own address, which is the packet's source. weir tells the sender.
func familyUnreachable(b *lib.Box) {
	for _, to := range []string{"64:ff9b::203.0.113.77", "192.0.2.7"} {
		out, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "10", to)
		if err == nil || !strings.Contains(out, "nreachable") {
			b.Errorf("ping %s: %v\n%s", to, err, out)
		}
	}
}

// Behind wan is a link with a small MTU. Each sender learns of it, in its own family.
func familyPathMTU(b *lib.Box) {
	b.IP(lab.WAN, "link set far0 mtu 1300")
	defer b.IP(lab.WAN, "link set far0 mtu 1500")
	if out, err := b.Try(lab.LAN, "ping", "-6", "-n", "-c", "2", "-i", "0.2", "-W", "2", "-s", "1400", "-M", "do", farAs6); err == nil || !strings.Contains(out, "mtu=1320") {
		b.Errorf("ping does not hear of the MTU: %v\n%s", err, out)
	}
	b.Ping(lab.LAN, farAs6, 1)
	b.IP(lab.LAN, "-6 route flush cache")
	b.Listen(lib.Far, 5201, "iperf3", "-4", "-s")
	b.Listen(lib.Far, 5202, "iperf3", "-6", "-s", "-p", "5202")
	b.Listen(lab.LAN, 5203, "iperf3", "-4", "-s", "-p", "5203")
	for _, test := range []struct {
		client []string // and its host
		sender string   // whose MTU towards
		to     string
		mtu    string
	}{
		{[]string{lab.LAN, "-6", "-c", farAs6}, lab.LAN, farAs6, "mtu 1320"},
		{[]string{lab.LAN, "-4", "-c", farAs4, "-p", "5202"}, lab.LAN, farAs4, "mtu 1280"},
		{[]string{lib.Far, "-6", "-c", lanAs6, "-p", "5203", "-R"}, lab.LAN, fwLAN, "mtu 1280"},
	} {
		b.Run(test.client[0], "iperf3", append(test.client[1:], "-n", "20M")...)
		if out := b.Run(test.sender, "ip", "route", "get", test.to); !strings.Contains(out, test.mtu) {
			b.Errorf("the route to %s lacks %q:\n%s", test.to, test.mtu, out)
		}
	}
}

// The box's own link has a small MTU.
func familyOwnMTU(b *lib.Box) {
	b.IP(lab.LAN, "-6 route flush cache", "-4 route flush cache")
	b.IP(lab.FW, "link set wan0 mtu 1400")
	defer b.IP(lab.FW, "link set wan0 mtu 1500")
	for _, test := range []struct{ to, mtu string }{{farAs6, "mtu=1420"}, {farAs4, "mtu=1380"}} {
		b.Until(10*time.Second, "ping to "+test.to+" says "+test.mtu, func() bool {
			out, _ := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", "-s", "1400", "-M", "do", test.to)
			return strings.Contains(strings.ReplaceAll(out, " = ", "="), test.mtu)
		})
	}
}
