package test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/test/lib"
)

// redirectRules give what leaves for one address another destination.
const redirectRules = `
set skip on lo
match out on wan0 inet from (lan0:network) nat-to (wan0)
match out on wan0 inet6 from (lan0:network) nat-to (wan0)
match out on wan0 inet proto tcp to 198.18.7.7 port 80 rdr-to 198.51.100.9 port 8000
match out on wan0 inet6 proto tcp to 2001:db8:77::7 port 80 rdr-to 2001:db8:9::9 port 8000
block return
pass in on lan0
pass out on wan0
pass out on wan0 inet proto tcp to 198.18.7.7 port 81 rdr-to 192.168.1.10 port 8001
pass out on wan0 inet6 proto tcp to 2001:db8:77::7 port 81 rdr-to fd00:1::10 port 8001
`

//	lan ── to an address that nobody has ──▶ fw ── rdr-to far, nat-to ──▶ wan ── far
//	               lan ◀── rdr-to lan ────── fw, to the same address
//
// Rules on the way out give packets another destination. What the box itself sends leaves
// by another interface then.
func TestRdrToOfOutgoing(t *testing.T) {
	weir.BothFar(t, func(b *lib.Box) {
		p := b.WeirRun(redirectRules)
		serveHelloTwice(b, lib.Far, 8000)
		serveHelloTwice(b, lab.LAN, 8001)
		fetch := func(host, from string) {
			b.Helper()
			if out, err := b.Try(host, "curl", "-s", "-S", "-m", "5", from); err != nil || !strings.Contains(out, "hello") {
				b.Errorf("%s from %s: %v\n%s", host, from, err, out)
			}
		}
		every := func() {
			b.Helper()
			fetch(lab.LAN, "http://198.18.7.7/")
			fetch(lab.LAN, "http://[2001:db8:77::7]/")
			fetch(lab.FW, "http://198.18.7.7:81/")
			fetch(lab.FW, "http://[2001:db8:77::7]:81/")
		}
		every()
		p.Kill()
		every()
	})
}

// serveHelloTwice is ServeHello for both families.
func serveHelloTwice(b *lib.Box, host string, port uint16) {
	b.Listen(host, port, "socat", fmt.Sprintf("TCP6-LISTEN:%d,fork,reuseaddr,ipv6only=0", port),
		"SYSTEM:while read x; do test ${#x} -gt 1 || break; done; echo HTTP/1.0 200 OK; echo; echo hello")
}

// loopbackRules redirect to a program that listens at 127.0.0.1 alone, as for spamd or a proxy.
const loopbackRules = `set pfctl-may-open yes
set skip on lo
block
pass in on wan0 inet proto tcp to (wan0) port 25 rdr-to 127.0.0.1 port 8025
pass in on lan0 inet proto tcp to any port 80 rdr-to 127.0.0.1 port 8025
pass in on wan0 inet proto tcp to port 8025
`

//	lan, wan ── :80, :25 ──▶ fw ── rdr-to ──▶ 127.0.0.1:8025      wan ── to 127.0.0.1 ──✕ fw
//
// A redirect reaches a program at 127.0.0.1. Nothing else from outside does, whatever the rules pass. The
// kernel's setting is as before without such rules, while weir is disabled, and after it.
func TestRedirectToLoopback(t *testing.T) {
	weir.Both(t, func(b *lib.Box) {
		b.Listen(lab.FW, 8025, "socat", "TCP4-LISTEN:8025,bind=127.0.0.1,fork,reuseaddr", "SYSTEM:echo 220 $SOCAT_PEERADDR")
		b.WeirRun(loopbackRules)
		setting := func() string {
			return strings.TrimSpace(b.Run(lab.FW, "cat", "/proc/sys/net/ipv4/conf/wan0/route_localnet"))
		}
		is := func(when, want string) {
			b.Helper()
			if got := setting(); got != want {
				b.Errorf("%s route_localnet is %s", when, got)
			}
		}
		greets := func(host, port, want string) {
			b.Helper()
			if got, err := b.Try(host, "socat", "-T", "5", "-u", "TCP4:"+port+",connect-timeout=5", "-"); err != nil || got != want {
				b.Errorf("%s hears %q, %v, from %s", host, got, err, port)
			}
		}
		greets(lab.WAN, fwWAN+":25", "220 "+wanHost+"\n")
		greets(lab.LAN, "198.51.100.7:80", "220 "+lanHost+"\n")
		is("with a redirect", "1")
		b.Scapy(lab.WAN, fmt.Sprintf("sendp(Ether(dst=getmacbyip(%q))/IP(src=%q, dst='127.0.0.1')/TCP(sport=4000, dport=8025, flags='S'), iface='eth0', verbose=0)", fwWAN, wanHost))
		if b.Packets("wan0", reason.MartianDest) == 0 {
			b.Errorf("a packet to 127.0.0.1 is not dropped:\n%s", b.Weir("info"))
		}
		b.Weir("pfctl", "-d")
		is("disabled", "0")
		b.Weir("pfctl", "-e")
		is("enabled again", "1")
		greets(lab.WAN, fwWAN+":25", "220 "+wanHost+"\n")
		b.Weir("load", b.Rules(strings.Replace(loopbackRules, "skip on lo", "skip on { lo wan0 }", 1)))
		is("with set skip", "0")
		b.Weir("load", b.Rules("pass\n"))
		is("without a redirect", "0")
		b.Weir("load", b.Rules(loopbackRules))
		is("loaded again", "1")
		b.Weir("stop")
		is("stopped", "0")
	})
}
