package test

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

//	wan ── from an address of the LAN ──▶ fw: block in quick from urpf-failed
//	lan ── to a network without a route ──▶ fw: block return to no-route
//
// Packets that cannot have come from where they say are blocked, and honest ones pass.
func TestReversePath(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.Run(lab.FW, "ip", "route", "add", "unreachable", "198.18.0.0/15")
		b.WeirRun(b.Rules("match out on wan0 inet nat-to (wan0)\nblock in log quick from urpf-failed label spoofed\nblock in quick to no-route label lost\npass\n"))
		b.Ping(lab.LAN, wanHost, 2)
		b.Ping(lab.WAN, fwWAN, 2)
		b.Scapy(lab.WAN, fmt.Sprintf("sendp([Ether(dst=getmacbyip(%q))/IP(src=%q, dst=%q)/UDP(sport=1, dport=9)/'spoofed'] * 3, iface='eth0', verbose=0)\n", fwWAN, "192.168.1.77", lanHost))
		if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "2", "-W", "1", "198.18.0.1"); err == nil {
			b.Errorf("ping without a route is answered:\n%s", out)
		}
		for label, want := range map[string]uint64{"label \"spoofed\"": 3, "label \"lost\"": 2} {
			b.Until(5*time.Second, "packets are blocked as "+label, func() bool { return b.Rule(label).Packets == want })
		}
	})
}
