package test

import (
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// needESP skips a story that this kernel cannot tell.
func needESP(t *testing.T, m lib.Medium) {
	t.Helper()
	if !lib.HasESP() || !lib.Has(m) {
		testenv.SkipOutside(t, "this kernel has no ESP, or no XFRM interfaces; the emulated one has")
	}
}

const xfrmRules = `match out on xfrm0 inet from (lan0:network) nat-to (xfrm0)
block
block return in on xfrm0 proto tcp to any port 99
pass in on lan0
pass out
pass in on wan0 proto esp
pass in on xfrm0 proto { icmp icmp6 }
`

//	lan ── lan0 fw wan0 ══ xfrm0 in ESP ══ wan
//
// The kernel leaves the Ethernet header of the encrypted frame in front of the packet that was in it. xfrm0
// has no Ethernet header otherwise, and what the box sends has none. Packets pass both ways, translated and
// not, redirected and through the stack; those that are blocked are answered.
func TestXFRMInterface(t *testing.T) {
	needESP(t, lib.XFRM)
	weir.BothAtOnce(t, func(b *lib.Box) {
		esp := b.ESP(7)
		esp.Interface("xfrm0")
		b.Address(lab.FW, "xfrm0", "10.9.0.1/30", "fd09::1/64")
		b.Address(lab.WAN, "xfrm0", "10.9.0.2/30", "fd09::2/64", "10.2.0.1/16", "fd02::1/48")
		b.IP(lab.FW, "route add 10.2.0.0/16 dev xfrm0", "route add fd02::/48 dev xfrm0")
		b.IP(lab.WAN, "route add fd00:1::/64 dev xfrm0", "route add 192.168.1.0/24 dev xfrm0")
		clear := b.ClearText("net 10.2.0.0/16 or net 10.9.0.0/30 or net fd02::/48 or net fd09::/64")
		b.WeirRun(xfrmRules)
		b.AwaitHook("xfrm0")
		for _, to := range []string{tunnelFar, tunnelFar6} {
			b.Ping(lab.LAN, to, 3)
			b.Ping(lab.FW, to, 3)
			server := b.Listen(lab.WAN, 5201, "iperf3", "-s", "-1")
			b.Run(lab.LAN, "iperf3", "-c", to, "--bidir", "-n", "300K")
			if said := server.Wait(10*time.Second, 0); !strings.Contains(said, "Accepted connection from ") || to == tunnelFar && !strings.Contains(said, "from 10.9.0.1,") {
				b.Errorf("the server was not asked by the box:\n%s", said)
			}
		}
		b.Run(lab.WAN, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", "-I", tunnelFar, lanHost)
		b.Ping(lab.WAN, lanHost6, 3)
		b.Ping(lab.WAN, "fd09::1", 3)
		for _, to := range []string{"TCP4:" + lanHost, "TCP6:[" + lanHost6 + "]"} {
			out, err := b.Try(lab.WAN, "socat", "-u", "OPEN:/dev/null", to+":99,connect-timeout=20")
			if err == nil || !strings.Contains(err.Error()+out, "refused") {
				b.Errorf("a blocked port of %s was not refused: %v: %s", to, err, out)
			}
		}
		for _, device := range []string{"xfrm0", "wan0", "lan0"} {
			for _, r := range []reason.Reason{reason.Malformed, reason.Short, reason.Guard, reason.Internal} {
				if n := b.Packets(device, r); n != 0 {
					b.Errorf("%d packets of %s count as %s", n, device, r)
				}
			}
		}
		if n := b.Packets("xfrm0", reason.State); n < 50 {
			b.Errorf("%d packets of states came in by xfrm0", n)
		}
		translatedByInterface(b)
		if seen := clear(); seen != "" {
			b.Errorf("packets left in clear:\n%s", seen)
		}
	})
}

// translatedByInterface has the far end reach a host of the LAN that has only an IPv4 address, while there are policies
// without an xfrm interface. What came by such an interface is translated all the same.
func translatedByInterface(b *lib.Box) {
	b.Helper()
	b.IP(lab.FW, "xfrm policy add src 192.0.2.0/24 dst 198.18.0.0/24 dir out action block")
	b.Until(5*time.Second, "the policy is followed", func() bool { p := b.Info().Policies; return p != nil && p.Followed == 1 })
	b.Weir("load", b.Rules(xfrmRules+"pass in on xfrm0 inet6 proto icmp6 to 64:ff9b::/96 af-to inet from (lan0)\n"))
	b.IP(lab.WAN, "route add 64:ff9b::/96 dev xfrm0")
	b.Run(lab.WAN, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", "64:ff9b::192.168.1.10")
	if n := b.Packets("xfrm0", reason.Policy); n != 0 {
		b.Errorf("%d packets that came by xfrm0 count as policy", n)
	}
}
