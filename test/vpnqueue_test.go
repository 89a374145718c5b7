package test

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/internal/vpn/key"
	"weir/test/lib"
)

//	lan ── lan0 fw wan0 ══ wg0 in UDP ══ wan, a plain WireGuard
//
// Queues at wg0 have the packets before they are encrypted, each class its own, by whichever engine of queues.
func TestVPNQueues(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		secret, public := vpnKeys(b)
		far := b.FarEnd(public, key.Secret{}, "10.9.0.1/32,192.168.1.0/24", "10.9.0.2/30", tunnelFar+"/16")
		b.IP(lab.WAN, "route add 192.168.1.0/24 dev "+lib.FarDevice)
		rules := func(engine string) string {
			return b.Rules(fmt.Sprintf(`queue up on wg0 bandwidth 8M%s
queue bulk parent up bandwidth 6M max 6M default
queue voice parent up bandwidth 2M
wireguard wg0 key file "%s" address 10.9.0.1/30 engine userspace
peer far on wg0 key "%s" endpoint %s port %d allowed { 10.9.0.2 10.2.0.0/16 }
pass
pass out on wg0 proto icmp set queue voice
`, engine, secret, far.Key, wanHost, far.Port))
		}
		b.WeirRun(rules(""))
		vpnRun(b)
		b.AwaitHook("wg0")
		b.Until(10*time.Second, "the tunnel works", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
		b.Listen(lab.WAN, 5201, "iperf3", "-s", "-p", "5201")
		for _, engine := range []string{"", " engine queue"} {
			b.Weir("load", rules(engine))
			voice := queueSent(b, "voice")
			bulk := queueSent(b, "bulk")
			b.Ping(lab.LAN, tunnelFar, 20)
			if n := queueSent(b, "voice") - voice; n < 20*84 || n > 25*84 {
				b.Errorf("20 echo requests count %d bytes in their queue%s, want %d: those of the packets before they are encrypted", n, engine, 20*84)
			}
			carriesTo(b, lab.LAN, "10.9.0.2", "queues at wg0"+engine, 6e6*1200/1228, "-p", "5201", "-t", "3", "-u", "-b", "20M", "-l", "1200")
			if queueSent(b, "bulk") == bulk {
				b.Errorf("the default queue%s has counted nothing", engine)
			}
		}
	})
}

// queueSent returns how many bytes a queue has sent.
func queueSent(b *lib.Box, name string) uint64 {
	b.Helper()
	for _, q := range lib.WeirJSON[view.Queues](b, "queues", "--json").Trees[0].Queues {
		if q.Name == name {
			return q.Sent
		}
	}
	b.Fatalf("there is no queue %s", name)
	return 0
}
