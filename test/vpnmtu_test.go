package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/control"
	"weir/internal/lab"
	"weir/internal/vpn/keeper"
	"weir/internal/vpn/key"
	"weir/internal/vpn/pathmtu"
	"weir/test/lib"
)

//	lan ── lan0 fw wan0 ── wan ── far, a plain WireGuard
//
// wan lets smaller packets through than both ends think, and tells nobody: it drops the messages of ICMP that say so.
// weir finds out how large packets may be, and all kinds of packets go.
func TestVPNPathMTU(t *testing.T) {
	weir.FarUnderTCX(t, func(b *lib.Box) {
		secret := filepath.Join(b.TempDir(), "wg0.key")
		public, err := key.ParsePublic(strings.TrimSpace(b.Weir("vpn", "genkey", secret)))
		if err != nil {
			b.Fatal(err)
		}
		far := b.FarEndIn(lib.Far, public, key.Secret{}, "10.9.0.1/32,fd09::1/128,192.168.1.0/24,fd00:1::/64", "10.9.0.2/30", tunnelFar+"/16", "fd09::2/64", tunnelFar6+"/48")
		b.IP(lib.Far, "route add 192.168.1.0/24 dev "+lib.FarDevice, "route add fd00:1::/64 dev "+lib.FarDevice)
		b.Run(lab.WAN, "nft", "add table inet dark; add chain inet dark out { type filter hook output priority 0; }; "+
			"add rule inet dark out icmp type destination-unreachable drop; add rule inet dark out icmpv6 type packet-too-big drop")
		rules := func(endpoint, option string) string {
			return b.Rules(fmt.Sprintf(`wireguard wg0 key file "%s" address { 10.9.0.1/30 fd09::1/64 } engine userspace %s
peer far on wg0 key "%s" endpoint %s port %d allowed { 10.9.0.2 10.2.0.0/16 fd09::2 fd02::/48 }
block
pass in on lan0
pass out
`, secret, option, far.Key, endpoint, far.Port))
		}
		for port, at := range map[uint16]string{5604: tunnelFar, 5606: tunnelFar6} {
			b.Listen(lib.Far, port, "iperf3", "-s", "-B", at, "-p", fmt.Sprint(port))
		}
		b.IP(lab.WAN, "link set far0 mtu 1400")
		b.WeirRun(rules(lib.FarHost, ""))
		vpnRun(b)
		b.Until(10*time.Second, "there is a session", func() bool { return tunnelAnswers(b, lab.FW, tunnelFar) })
		measured := func(mtu int) {
			b.Helper()
			var s keeper.Status
			b.Until(time.Minute, fmt.Sprintf("the MTU is %d", mtu), func() bool { // on a busy machine answers take long
				s = tunnelOf(b)
				p := s.Peers[0].Path
				return int(s.MTU) == mtu && !s.Fixed && p != nil && int(p.Size) == mtu && p.By == pathmtu.Echo && !p.Cut
			})
			b.Until(20*time.Second, "the rules hold TCP's segments", func() bool {
				text := b.Weir("rules")
				return strings.Contains(text, fmt.Sprintf("max-mss %d", mtu-40)) && strings.Contains(text, fmt.Sprintf("max-mss %d", mtu-60))
			})
		}
		// Messages of the path's 1,400 bytes; those that come are padded to 16 bytes, and veth takes 4 bytes more.
		measured(1340)
		b.Tell("IPv4 outside", func(b *lib.Box) { vpnMTU(b, 1340) })
		if said := b.Weir("vpn", "status"); !strings.Contains(said, "MTU 1340, ") || !strings.Contains(said, "path MTU 1340, measured at ") {
			b.Errorf("weir vpn status says\n%s", said)
		}
		b.Weir("load", rules(lib.FarHost6, ""))
		b.Until(10*time.Second, "the peer is there over IPv6", func() bool {
			return tunnelAnswers(b, lab.FW, tunnelFar) && tunnelOf(b).Peers[0].Endpoint.Addr().Is6()
		})
		measured(1312)
		b.Tell("IPv6 outside", func(b *lib.Box) { vpnMTU(b, 1312) })
		b.Tell("fixed", func(b *lib.Box) {
			b.Weir("load", rules(lib.FarHost6, "mtu 1420"))
			b.Until(5*time.Second, "the MTU is as the rules say", func() bool { s := tunnelOf(b); return s.MTU == 1420 && s.Fixed && s.Peers[0].Path == nil })
			if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", "-M", "do", "-s", "1392", tunnelFar); err == nil || strings.Contains(out, "mtu") {
				b.Errorf("the path lets through what it should not, or tells: %s", out)
			}
		})
		said := b.Weir("vpn", "log")
		for _, want := range []string{
			": the engine userspace begins: ", "wg0 far: mtu: packets of 1340 bytes go: echo",
		} {
			if !strings.Contains(said, want) {
				b.Errorf("weir vpn log does not say %q:\n%s", want, said)
			}
		}
	})
}

// vpnMTU sends all kinds of packets through a tunnel of an MTU.
func vpnMTU(b *lib.Box, mtu int) {
	b.Helper()
	for to, headers := range map[string]int{tunnelFar: 28, tunnelFar6: 48} {
		port := map[string]string{tunnelFar: "5604", tunnelFar6: "5606"}[to]
		b.Run(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", fmt.Sprint(mtu-headers), to)
		if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", fmt.Sprint(mtu-headers+1), to); err == nil || !strings.Contains(out, fmt.Sprint(mtu)) {
			b.Errorf("a packet of %d bytes to %s: %s", mtu+1, to, out)
		}
		b.Run(lab.LAN, "ip", "route", "flush", "cache")
		b.Run(lab.LAN, "ip", "-6", "route", "flush", "cache")
		for _, way := range []string{"-b0", "-R"} {
			b.Run(lab.LAN, "iperf3", "-c", to, "-p", port, "-n", "2M", way, "-f", "m")
		}
		b.Until(time.Minute, "no datagram is lost on the way to "+to, func() bool { // the server, or the machine, may be busy
			out, err := b.Try(lab.LAN, "iperf3", "-c", to, "-p", port, "-n", "500K", "-u", "-l", fmt.Sprint(mtu-headers), "-b", "5M")
			return err == nil && strings.Contains(out, "(0%)")
		})
	}
}

//	lan ── lan0 fw wan0 ══ ppp0 in a PPPoE session ══ wan, a concentrator and a plain WireGuard
//
// The MTU is that of what carries the tunnel, and follows it.
func TestVPNOverPPPoE(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		p, password := b.Provider(1492)
		b.IP(lab.FW, "route del default", "-6 route del default")
		secret := filepath.Join(b.TempDir(), "wg0.key")
		public, err := key.ParsePublic(strings.TrimSpace(b.Weir("vpn", "genkey", secret)))
		if err != nil {
			b.Fatal(err)
		}
		far := b.FarEnd(public, key.Secret{}, "10.9.0.1/32,192.168.1.0/24", "10.9.0.2/30", tunnelFar+"/16")
		b.IP(lab.WAN, "route add 192.168.1.0/24 dev "+lib.FarDevice)
		rules := func(mtu int) string {
			return b.Rules(fmt.Sprintf(`pppoe ppp0 on wan0 user me mtu %d password file "%s"
wireguard wg0 key file "%s" address 10.9.0.1/30 engine userspace
peer far on wg0 key "%s" endpoint %s port %d allowed { 10.9.0.2 10.2.0.0/16 }
pass
`, mtu, password, secret, far.Key, lib.ProviderPeer, far.Port))
		}
		b.WeirRun(rules(1492))
		p.Await(awaitPPPoE(b, control.PPPoEUp).Session)
		vpnRun(b)
		b.AwaitHook("wg0") // packets into an interface that weir does not know yet are dropped
		for _, c := range []struct{ line, mtu int }{{1492, 1420}, {1400, 1340}, {1492, 1420}} {
			b.Weir("load", rules(c.line))
			b.Until(30*time.Second, fmt.Sprintf("the MTU is %d over %d", c.mtu, c.line), func() bool {
				tunnelAnswers(b, lab.FW, tunnelFar) // so that there is a session
				return int(tunnelOf(b).MTU) == c.mtu
			})
			b.Run(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", fmt.Sprint(c.mtu-28), tunnelFar)
		}
	})
}

//	lan ── lan0 fw wan0 ── wan ── far, a plain WireGuard behind which nobody answers echo requests
//
// The path is measured by the far end's keepalives, 10 s after each packet: larger sizes than it lets through, which it tells nobody.
func TestVPNPathByKeepalives(t *testing.T) {
	weir.FarUnderTCX(t, func(b *lib.Box) {
		secret, public := vpnKeys(b)
		far := b.FarEndIn(lib.Far, public, key.Secret{}, "10.9.0.1/32,fd09::1/128,192.168.1.0/24", "10.9.0.2/30", "fd09::2/64")
		b.IP(lib.Far, "route add 192.168.1.0/24 dev "+lib.FarDevice)
		b.Sysctl(lib.Far, "net/ipv4/icmp_echo_ignore_all", "1")
		b.Sysctl(lib.Far, "net/ipv6/icmp/echo_ignore_all", "1")
		b.Run(lab.WAN, "nft", "add table inet dark; add chain inet dark out { type filter hook output priority 0; }; add rule inet dark out icmp type destination-unreachable drop")
		b.IP(lab.FW, "link set wan0 mtu 1360") // so that there are few sizes to try
		b.IP(lab.WAN, "link set far0 mtu 1350")
		b.WeirRun(b.Rules(fmt.Sprintf(`wireguard wg0 key file "%s" address { 10.9.0.1/30 fd09::1/64 } engine userspace
peer far on wg0 key "%s" endpoint %s port %d allowed { 10.9.0.2 fd09::2 }
pass
`, secret, far.Key, lib.FarHost, far.Port)))
		vpnRun(b)
		b.AwaitHook("wg0")
		began := time.Now()
		if tunnelAnswers(b, lab.FW, "10.9.0.2") {
			b.Fatal("the far end answers echo requests")
		}
		b.Until(3*time.Minute, "the path is measured", func() bool {
			s := tunnelOf(b)
			p := s.Peers[0].Path
			return p != nil && p.By == pathmtu.Keepalive && p.Size == 1288 && s.MTU == 1288 // 1290 would go: it is measured to 8 bytes
		})
		b.Logf("that took %v", time.Since(began).Round(time.Second))
		if said := b.Weir("vpn", "log"); !strings.Contains(said, "wg0 far: mtu: packets of 1288 bytes go: keepalive") {
			b.Errorf("weir vpn log says\n%s", said)
		}
		b.Listen(lib.Far, 5604, "iperf3", "-s", "-1", "-p", "5604")
		b.Run(lab.LAN, "iperf3", "-c", "10.9.0.2", "-p", "5604", "-n", "4M", "-f", "m")
		if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", "-M", "do", "-s", "1261", "10.9.0.2"); err == nil || !strings.Contains(out, "1288") {
			b.Errorf("a packet of 1289 bytes: %s", out)
		}
	})
}
