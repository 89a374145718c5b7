package test

import (
	"fmt"
	"strings"
	"testing"

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

func toIPv6(b *lib.Box) {
	b.Listen(lab.LAN, 8081, "socat", "TCP6-LISTEN:8081,fork,reuseaddr", "SYSTEM:echo $SOCAT_PEERADDR")
	out := b.Run(lab.WAN, "sh", "-c", "socat -t 10 - TCP4:"+fwWAN+":8081 </dev/null")
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
