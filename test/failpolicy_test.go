package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// failRules pass one connection at a time to the first server, and let the other have none:
// its translation has no port left for a second one.
const failRules = `
set skip on lo
set fail-policy %s
match out on wan0 proto { tcp udp } to port { 8001 9 } nat-to (wan0) port 50000
pass
pass in on lan0 proto tcp to port 8000 keep state (max 1)
`

//	lan ── curl, one connection too many ──▶ fw: set fail-policy return
//
// A packet that the rules pass, but that gets no state or no port, is refused like a blocked
// one with return. With drop, which is the default, its sender hears nothing.
func TestFailPolicy(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.IP(lab.WAN, "route replace 192.168.1.0/24 via "+fwWAN)
		b.ServeHello(lab.WAN, 8000)
		b.ServeHello(lab.WAN, 8001)
		b.WeirRun(fmt.Sprintf(failRules, "return"))
		for _, port := range []int{8000, 8001} {
			held := b.Start(lab.LAN, "socat", "-u", fmt.Sprintf("TCP4:%s:%d", wanHost, port), "-")
			b.Until(10*time.Second, "the first connection has a state", func() bool { return len(b.States("proto", "tcp", "port", fmt.Sprint(port))) == 1 })
			url := fmt.Sprintf("http://%s:%d/", wanHost, port)
			if out, _ := b.Try(lab.LAN, "curl", "-s", "-m", "5", "-w", "%{exitcode}", url); out != "7" { // it could not connect
				b.Errorf("curl %s ends with status %s", url, out)
			}
			held.Kill()
		}
		out := b.Scapy(lab.LAN, fmt.Sprintf("ps = [sr1(IP(dst=%q)/UDP(sport=n, dport=9)/'x', timeout=3, verbose=0) for n in (7, 8)]\nprint([p and p.summary() for p in ps])\n", wanHost))
		if strings.Count(out, "dest-unreach") != 2 { // the first by wan, which has no server there
			b.Errorf("scapy says: %s", out)
		}
		b.Weir("load", b.Rules(fmt.Sprintf(failRules, "drop")))
		held := b.Start(lab.LAN, "socat", "-u", fmt.Sprintf("TCP4:%s:8001", wanHost), "-")
		defer held.Kill()
		out, _ = b.Try(lab.LAN, "curl", "-s", "-m", "2", "-w", "%{exitcode}", fmt.Sprintf("http://%s:8001/", wanHost))
		if out != "28" { // it has waited in vain
			b.Errorf("with drop, curl ends with status %s", out)
		}
	})
}
