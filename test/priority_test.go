package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// priorityRules give priorities to what leaves by the bridge, and to what comes for the
// box. They do not cover IPv6. What leaves for 10.2.2.20 has no state on that side.
const priorityRules = `
pass allow-opts
match out on wan-bridge inet proto icmp set prio 5
match out on wan-bridge inet proto tcp set prio (2, 6)
match in on lan-wire inet proto icmp to lan-wire set prio 3
pass out on wan-bridge inet proto icmp to 10.2.2.20 no state allow-opts set prio 1
pass in on wan-bridge inet proto icmp from 10.2.2.20 no state allow-opts
`

// prioritySeen is an nftables table. It counts what the bridge's port sends, after weir,
// and what the box gets. What the box sends over IPv6 has the administrator's priority.
const prioritySeen = `
table netdev seen {
	counter echo {}
	counter echo_other {}
	counter data {}
	counter acks {}
	counter tcp_other {}
	counter stateless {}
	counter stateless_other {}
	counter six {}
	counter six_other {}
	chain sent {
		type filter hook egress device "port-wan" priority 0;
		ip daddr 10.2.2.20 meta priority 0:1 counter name stateless accept
		ip daddr 10.2.2.20 counter name stateless_other accept
		ip protocol icmp meta priority 0:5 counter name echo accept
		ip protocol icmp counter name echo_other accept
		ip protocol tcp meta priority 0:2 counter name data accept
		ip protocol tcp meta priority 0:6 counter name acks accept
		ip protocol tcp counter name tcp_other accept
		icmpv6 type echo-request ip6 saddr fd77:2:2::1 meta priority 0:7 counter name six accept
		icmpv6 type echo-request ip6 saddr fd77:2:2::1 counter name six_other accept
	}
}
table inet box {
	counter local {}
	counter local_other {}
	chain came {
		type filter hook input priority 0;
		iifname "lan-wire" icmp type echo-request meta priority 0:3 counter name local accept
		iifname "lan-wire" icmp type echo-request counter name local_other accept
	}
	chain sends {
		type filter hook output priority 0;
		icmpv6 type echo-request meta priority set 0:7
	}
}
`

// seen returns the packets of an nftables counter in fw.
func seen(b *lib.Box, table, counter string) int {
	b.Helper()
	words := strings.Fields(b.Run(lab.FW, "nft", "list counter "+table+" "+counter))
	packets := -1
	for i, w := range words {
		if w == "packets" {
			fmt.Sscan(words[i+1], &packets) //nolint:errcheck // it stays -1
		}
	}
	return packets
}

//	lan ══ wire ══ fw ══ bridge, at whose port nftables looks ══ wan
//
// skb->priority has what rules set, in all packets that go through the stack or TCX:
// redirected, forwarded by the stack, sent and received by the box. If no rule sets it,
// it stays.
func TestPriorities(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		lans, wans := b.Paths(lib.Wire, lib.Bridge)
		lan, wan := lans[0], wans[1]
		b.WeirRun(priorityRules)
		b.Run(lab.FW, "nft", prioritySeen)
		expect := func(what, table, counter string, least int) {
			b.Helper()
			b.Until(5*time.Second, fmt.Sprintf("%s: at least %d packets of %s", what, least, counter), func() bool { return seen(b, table, counter) >= least })
		}
		to := wan.Addr(10, false)
		b.Run(lab.LAN, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", "-I", lan.Addr(10, false), to)
		expect("forwarded", "netdev seen", "echo", 3)
		b.Run(lab.LAN, "ping", "-n", "-R", "-c", "3", "-i", "0.1", "-W", "2", "-I", lan.Addr(10, false), to)
		expect("forwarded by the stack, with options", "netdev seen", "echo", 6)
		for i, options := range [][]string{nil, {"-R"}} {
			args := append([]string{"-n", "-c", "3", "-i", "0.1", "-W", "2", "-I", lan.Addr(10, false)}, options...)
			b.Run(lab.LAN, "ping", append(args, wan.Addr(20, false))...)
			expect(fmt.Sprint("no state where it leaves ", options), "netdev seen", "stateless", 3*(i+1))
		}
		b.Run(lab.FW, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", to)
		expect("the box's own", "netdev seen", "echo", 9)
		b.Run(lab.LAN, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", "-I", lan.Addr(10, false), lan.Addr(1, false))
		expect("for the box", "inet box", "local", 3)
		b.Run(lab.FW, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", wan.Addr(10, true))
		expect("by the administrator", "netdev seen", "six", 3)
		server := b.Listen(lab.WAN, 5401, "iperf3", "-s", "-1", "-p", "5401")
		b.Run(lab.LAN, "iperf3", "-c", to, "-p", "5401", "-B", lan.Addr(10, false), "-n", "500K")
		server.Wait(10*time.Second, 0)
		expect("TCP with data", "netdev seen", "data", 5)
		expect("TCP without data", "netdev seen", "acks", 2)
		for _, other := range []string{"echo_other", "stateless_other", "tcp_other", "six_other"} {
			if n := seen(b, "netdev seen", other); n != 0 {
				b.Errorf("%d packets of %s have another priority", n, other)
			}
		}
		if n := seen(b, "inet box", "local_other"); n != 0 {
			b.Errorf("%d packets for the box have another priority", n)
		}
		if states := b.Weir("states", "-v"); !strings.Contains(states, "prio (2, 6)") || !strings.Contains(states, "prio 5") {
			b.Errorf("weir states -v shows no priorities:\n%s", states)
		}
	})
}

// prioRules count pings by the priority with which they come.
const prioRules = `
set skip on lo
pass
pass in inet proto icmp icmp-type echoreq prio 5 no state label "five"
pass in inet proto icmp icmp-type echoreq prio 3 no state label "three"
pass in inet proto icmp icmp-type echoreq prio 0 no state label "background"
pass out inet proto icmp prio 6 no state label "own"
`

//	lan ── pings with a tag that has only a priority ──▶ fw
//
// Rules see the priority of a tag, and that of the box's own sockets.
func TestPrioOfTags(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(prioRules)
		for prio, label := range map[int]string{5: "five", 1: "background"} {
			b.Scapy(lab.LAN, fmt.Sprintf(`sendp(Ether(dst=getmacbyip("%s"))/Dot1Q(vlan=0, prio=%d)/IP(dst="%s")/ICMP(), iface="eth0", count=4, verbose=0)`, fwLAN, prio, fwLAN))
			if n := b.Rule(`label "` + label + `"`).Packets; n != 4 {
				b.Errorf("%d pings with priority %d", n, prio)
			}
		}
		b.Ping(lab.LAN, fwLAN, 2)
		if n := b.Rule(`label "three"`).Packets; n != 2 {
			b.Errorf("%d pings without a tag", n)
		}
		b.Run(lab.FW, "ping", "-n", "-c", "2", "-W", "2", "-Q", "0x10", wanHost) // the stack's priority for a low delay is 6
		if n := b.Rule(`label "own"`).Packets; n != 2 {
			b.Errorf("%d pings of the box with priority 6", n)
		}
	})
}

//	lan ══ VLAN that gives its frames priority 5 ══ fw
//
// The same for VLAN devices, whose tags the kernel takes out.
func TestPrioOfVLANs(t *testing.T) {
	needVLANs(t)
	weir.BothAtOnce(t, func(b *lib.Box) {
		lans, _ := b.Paths(lib.Wire, lib.VLAN)
		lan := &lans[1]
		b.Run(lab.LAN, "ip", "link", "set", "dev", string(lan.Medium), "type", "vlan", "egress-qos-map", "0:5")
		b.WeirRun(prioRules)
		b.Run(lab.LAN, "ping", "-n", "-c", "3", "-i", "0.2", "-W", "2", "-I", lan.Addr(10, false), lan.Addr(1, false))
		if n := b.Rule(`label "five"`).Packets; n != 3 {
			b.Errorf("%d pings with priority 5", n)
		}
	})
}
