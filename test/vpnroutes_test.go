package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/vpn/key"
	"weir/test/lib"
)

//	          ┌─ wan0 ══ eth0 ┐
//	lan ── fw ┤               wan, a plain WireGuard at an address of its own
//	          └─ wan1 ══ eth1 ┘
//
// No way is chosen for the tunnel, so it follows the routes. They lead to the other uplink, and the first one, which has its carrier and its
// address still, carries nothing any more. Then they lead back.
func TestVPNFollowsRoutes(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.Wire("wan1", lab.WAN, "eth1")
		b.Address(lab.FW, "wan1", lib.FWISP+"/24")
		b.Address(lab.WAN, "eth1", lib.ISPHost+"/24")
		b.Address(lab.WAN, "lo", lib.FarHost+"/32")
		secret, public := vpnKeys(b)
		far := b.FarEnd(public, key.Secret{}, "10.9.0.1/32,192.168.1.0/24", "10.9.0.2/30", tunnelFar+"/16")
		b.IP(lab.WAN, "route add 192.168.1.0/24 dev "+lib.FarDevice,
			"route replace 203.0.113.0/24 dev eth0 src "+lib.FarHost, "route replace 192.0.2.0/24 dev eth1 src "+lib.FarHost)
		b.WeirRun(b.Rules(fmt.Sprintf(`wireguard wg0 key file "%s" address 10.9.0.1/30 engine userspace
peer far on wg0 key "%s" endpoint %s port %d allowed { 10.9.0.2 10.2.0.0/16 }
block
pass in on lan0
pass out
pass in on wg0 inet proto icmp
`, secret, far.Key, lib.FarHost, far.Port)))
		vpnRun(b)
		b.Until(10*time.Second, "the tunnel works", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
		time.Sleep(3 * time.Second) // weir vpn run looks each second where the routes lead
		for _, to := range []struct{ other, dead, change string }{
			{"wan1", "eth0", "route add " + lib.FarHost + "/32 via " + lib.ISPHost + " dev wan1"},
			{"wan0", "eth1", "route del " + lib.FarHost + "/32 via " + lib.ISPHost + " dev wan1"},
		} {
			b.Run(lab.WAN, "nft", fmt.Sprintf(`table inet cut {
	chain in { type filter hook prerouting priority -400; iifname "%s" drop; }
	chain out { type filter hook postrouting priority 400; oifname "%s" drop; }
}`, to.dead, to.dead))
			b.IP(lab.FW, to.change)
			began := time.Now()
			b.Until(30*time.Second, "the tunnel works by "+to.other, func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
			took := time.Since(began)
			b.Logf("the tunnel worked by %s after %v", to.other, took)
			if took > lib.Scaled(10*time.Second) { // if nobody looks where the routes lead, it takes the engine 15 s to notice
				b.Error("that is too late")
			}
			b.Run(lab.WAN, "nft", "delete table inet cut")
		}
		b.Tell("both uplinks live", func(b *lib.Box) { vpnLed(b, far) })
		if out := b.Weir("vpn", "log"); !strings.Contains(out, "leave by wan1 instead of wan0: the routes have changed") {
			b.Errorf("weir vpn log says\n%s", out)
		}
	})
}

// vpnLed has the routes lead to the other uplink and back while both carry packets, and the peer sends by the one of before, as it hears
// nothing by the new one yet. Messages leave by the one that the routes lead to all the same, as with the kernel's WireGuard, so that the
// peer follows as soon as it hears something.
func vpnLed(b *lib.Box, far *lib.FarEnd) {
	b.Helper()
	for _, to := range []struct{ was, now, deaf, change string }{
		{"wan0", "wan1", "eth1", "route add " + lib.FarHost + "/32 via " + lib.ISPHost + " dev wan1"},
		{"wan1", "wan0", "eth0", "route del " + lib.FarHost + "/32 via " + lib.ISPHost + " dev wan1"},
	} {
		b.Until(10*time.Second, "messages leave by "+to.was, func() bool {
			before := leftBy(b, to.was)
			return tunnelAnswers(b, lab.LAN, tunnelFar) && leftBy(b, to.was) > before
		})
		time.Sleep(3 * time.Second) // weir vpn run looks each second where the routes lead
		b.FloodEvery(lab.WAN, tunnelBox, 5*time.Millisecond)
		b.Run(lab.WAN, "nft", fmt.Sprintf(`table inet deaf {
	chain in { type filter hook prerouting priority -400; iifname "%s" udp dport %d drop; }
}`, to.deaf, far.Port))
		b.IP(lab.FW, to.change)
		b.Until(10*time.Second, "messages leave by "+to.now, func() bool {
			was, now := leftBy(b, to.was), leftBy(b, to.now)
			time.Sleep(500 * time.Millisecond)
			return leftBy(b, to.was)-was < 5 && leftBy(b, to.now)-now > 50
		})
		b.Run(lab.WAN, "nft", "delete table inet deaf")
		b.Until(10*time.Second, "the peer has followed", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
		b.FloodEvery(lab.LAN, tunnelFar, 5*time.Millisecond)
		again := b.FloodEvery(lab.WAN, tunnelBox, 5*time.Millisecond)
		time.Sleep(time.Second)
		again.AllAnswered(50)
	}
}
