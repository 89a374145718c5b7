package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/internal/vpn/key"
	"weir/test/lib"
)

//	lan ── lan0 fw wan0 ══ wg0 ══ wan, the kernel's WireGuard
//
// The kernel's WireGuard is at the other end of a link that is to be wide, of a plain one, and of one whose engine is the
// kernel's, too. One form of statement does for all; weir says which engine it is, and why. The kernel's tunnel needs no
// process.
func TestVPNKernel(t *testing.T) {
	if !lib.Has(lib.WireGuard) {
		testenv.SkipOutside(t, "this kernel has no WireGuard; the emulated one has")
	}
	weir.UnderTCX(t, func(b *lib.Box) {
		secret, public := vpnKeys(b)
		psk, preshared := filepath.Join(b.TempDir(), "far.psk"), key.NewPreshared()
		if err := key.WriteFile(psk, preshared); err != nil {
			b.Fatal(err)
		}
		far := b.FarEnd(public, preshared, "10.9.0.1/32,fd09::1/128,192.168.1.0/24,fd00:1::/64", "10.9.0.2/30", tunnelFar+"/16", "fd09::2/64", tunnelFar6+"/48")
		if !far.Kernel {
			b.Fatal("the far end is not the kernel's WireGuard")
		}
		b.IP(lab.WAN, "route add 192.168.1.0/24 dev "+lib.FarDevice, "route add fd00:1::/64 dev "+lib.FarDevice)
		rules := func(engine, extra string) string {
			return b.Rules(fmt.Sprintf(`wireguard wg0 key file "%s" mtu 1420 address { 10.9.0.1/30 fd09::1/64 } %s
peer far on wg0 key "%s" psk file "%s" endpoint %s port %d allowed { 10.9.0.2 10.2.0.0/16 fd09::2 fd02::/48 } %s
block
pass in on lan0
pass out
pass in on wg0 proto { icmp icmp6 }
`, secret, engine, far.Key, psk, wanHost, far.Port, extra))
		}
		clear := b.ClearText("net 10.2.0.0/16 or net 10.9.0.0/30 or net fd02::/48 or net fd09::/64")
		b.Listen(lab.WAN, 5201, "iperf3", "-s", "-B", tunnelFar6)
		b.WeirRun(rules("", "wide 4"))
		run := vpnRun(b)
		works := func(engine, why string) {
			b.Helper()
			b.Until(20*time.Second, "the tunnel works with the engine "+engine+": "+why, func() bool {
				s := tunnelOf(b)
				return s.Engine == engine && s.Why == why && tunnelAnswers(b, lab.LAN, tunnelFar)
			})
		}
		packets := func(engine, why string) {
			b.Helper()
			works(engine, why)
			b.Ping(lab.LAN, tunnelFar6, 1)
			b.Ping(lab.WAN, tunnelBox, 1)
			b.Run(lab.LAN, "iperf3", "-c", tunnelFar6, "-n", "200K", "--bidir")
			if s := tunnelOf(b); s.Peers[0].Endpoint.String() != fmt.Sprintf("%s:%d", wanHost, far.Port) || s.Peers[0].Received+s.Peers[0].Sent < 200e3 || min(s.Peers[0].Received, s.Peers[0].Sent) < 10e3 {
				b.Errorf("weir vpn status: %+v", s)
			}
			if out := b.Weir("interfaces"); !strings.Contains(out, "the tunnel wg0 has the engine "+engine+": "+why+"\n") {
				b.Errorf("weir interfaces:\n%s", out)
			}
		}
		packets("userspace", "the kernel's WireGuard has no wide links")
		if w := tunnelOf(b).Peers[0].Wide; w == nil || w.Used != 1 || len(w.Ports) != 1 {
			b.Errorf("the link to a plain peer has %+v", w)
		}
		b.Weir("load", rules("engine userspace", ""))
		works("userspace", "the configuration says so")
		b.Weir("load", rules("", ""))
		packets("kernel", "this kernel has WireGuard")
		flood := b.FloodEvery(lab.LAN, tunnelFar, 50*time.Millisecond)
		run.Kill()
		time.Sleep(500 * time.Millisecond)
		run = vpnRun(b)
		flood.AllAnswered(10)
		works("kernel", "this kernel has WireGuard")
		vpnReconnect(b)
		b.IP(lab.FW, "link del wg0")
		works("kernel", "this kernel has WireGuard")
		run.Kill()
		if out := b.Weir("interfaces"); !strings.Contains(out, "the tunnel wg0 has no engine: ") {
			b.Errorf("weir interfaces without weir vpn run:\n%s", out)
		}
		b.IP(lab.FW, "link del wg0")
		noTunnelAnswers(b)
		if seen := clear(); seen != "" {
			b.Errorf("packets left in clear:\n%s", seen)
		}
	})
}
