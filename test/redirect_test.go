package test

import (
	"fmt"
	"strings"
	"testing"

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
