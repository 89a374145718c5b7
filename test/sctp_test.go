package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

const sctpRules = `
set skip on lo
block
match out on wan0 inet from (lan0:network) nat-to (wan0)
match out on wan0 inet6 from (lan0:network) nat-to (wan0)
pass proto sctp to port 5000
`

// sctpServer answers one INIT whose checksum is right, and says from where it came.
const sctpServer = `
p = sniff(iface="eth0", filter="sctp and dst host %[1]s", count=1, timeout=30, started_callback=lambda: print("ready", flush=True))[0][%[2]s]
p = %[2]s(bytes(p))
sent = p[SCTP].chksum
del p[SCTP].chksum
assert %[2]s(bytes(p))[SCTP].chksum == sent
send(%[2]s(src=%[1]q, dst=p.src)/SCTP(sport=p.dport, dport=p.sport, tag=7)/SCTPChunkInitAck(init_tag=9), verbose=0)
print(p.src, p.sport)
`

// sctpClient sends an INIT and says what answers.
const sctpClient = `
a = sniff(iface="eth0", filter="sctp and src host %[1]s", count=1, timeout=%[3]d, started_callback=lambda:
    send(%[2]s(dst=%[1]q)/SCTP(sport=4000, dport=%[4]d)/SCTPChunkInit(init_tag=7), verbose=0))
for p in a:
    p = %[2]s(bytes(p[%[2]s]))
    got = p[SCTP].chksum
    del p[SCTP].chksum
    assert %[2]s(bytes(p))[SCTP].chksum == got
    print("answered", p.sport, p.dport)
`

//	lan ── scapy: INIT ──▶ fw: pass proto sctp to port 5000, nat-to ──▶ wan: scapy: INIT ACK
//
// Rules know the ports of SCTP. The address is translated, the port and the checksum stay.
func TestSCTP(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(sctpRules)
		for _, way := range []struct{ ip, server, seen string }{{"IP", wanHost, fwWAN}, {"IPv6", wanHost6, fwWAN6}} {
			server := b.Start(lab.WAN, "/usr/bin/python3", "-c", "from scapy.all import *\n"+fmt.Sprintf(sctpServer, way.server, way.ip))
			awaitAll(b, "wan", server, "ready")
			if out := b.Scapy(lab.LAN, fmt.Sprintf(sctpClient, way.server, way.ip, 10, 5000)); !strings.Contains(out, "answered 5000 4000") {
				b.Errorf("%s: the client says %q", way.ip, out)
			}
			if out := server.Wait(10*time.Second, 0); !strings.Contains(out, way.seen+" 4000") {
				b.Errorf("%s: the server says %q", way.ip, out)
			}
		}
		if out := b.Scapy(lab.LAN, fmt.Sprintf(sctpClient, wanHost, "IP", 2, 5001)); strings.Contains(out, "answered") {
			b.Errorf("a blocked port: the client says %q", out)
		}
		if states := b.Weir("states", "proto", "sctp"); !strings.Contains(states, wanHost+":5000") || strings.Contains(states, "5001") {
			b.Errorf("weir states says:\n%s", states)
		}
	})
}

//	lan ── socat ──▶ fw: nat-to (wan0) map-e-portset 6/8/52 ──▶ wan: socat says the port
//
// All source ports are of the set that RFC 7597 gives the number 52: the first six bits of a
// port are not 0, and the eight bits behind them are the number.
func TestMapE(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.WeirRun("set skip on lo\nmatch out on wan0 inet from (lan0:network) nat-to (wan0) map-e-portset 6/8/52\npass\n")
		b.Listen(lab.WAN, 81, "socat", "TCP4-LISTEN:81,fork,reuseaddr", "SYSTEM:read x; echo $SOCAT_PEERPORT")
		seen := map[int]bool{}
		for range 20 {
			out := b.Run(lab.LAN, "sh", "-c", fmt.Sprintf("echo hello | socat -t 10 - TCP4:%s:81", wanHost))
			var port int
			if _, err := fmt.Sscan(out, &port); err != nil || port>>10 == 0 || port>>2&0xff != 52 {
				b.Errorf("the server saw port %q", out)
			}
			seen[port] = true
		}
		if len(seen) < 10 {
			b.Errorf("20 connections had %d ports", len(seen))
		}
	})
}
