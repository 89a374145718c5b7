package test

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/fw/control"
	"weir/internal/lab"
	"weir/test/lib"
)

// pppoeUplinkRules have two uplinks. Connections to ports 80 and 81 are answered by the one that they came by,
// those to port 82 by the default route.
const pppoeUplinkRules = `pppoe ppp0 on wan0 user me password file "%[1]s"
pppoe ppp1 on wan1 user me password file "%[1]s"
match out on ppp0 inet from (lan0:network) nat-to (ppp0)
match out on ppp1 inet from (lan0:network) nat-to (ppp1)
block return
pass in on lan0
pass in on lan0 inet proto tcp to port { 8080, 5201 } route-to (ppp1 %[2]s)
pass out on lan0
pass out on { ppp0, ppp1 }
pass in on ppp1 reply-to (ppp1 %[2]s) inet proto tcp to port 80 rdr-to 192.168.1.10
pass in on ppp1 reply-to (ppp1 %[2]s) inet proto tcp to port 81
pass in on ppp1 reply-to (ppp1 %[2]s) inet proto icmp
pass in on ppp1 inet proto tcp to port 82 rdr-to 192.168.1.10 port 80
`

//	          ┌─ wan0 ══ ppp0 ══ wan
//	lan ── fw ┤
//	          └─ wan1 ══ ppp1 ══ isp
//
// Two sessions with two providers. Replies go back to where the connection came in, and rules choose an uplink.
// The default route is that of the first while it has a session.
func TestPPPoEUplinks(t *testing.T) {
	weir.BothUplinks(t, func(b *lib.Box) {
		first, password := b.Provider(1492)
		second := b.SecondProvider(1492)
		b.IP(lab.FW, "route del default", "-6 route del default", "address flush dev wan1", "-6 address flush dev wan1 scope global")
		for _, host := range []string{lab.WAN, lib.ISP} {
			serveName(b, host, 8080)
			serveName(b, host, 8081)
		}
		serveName(b, lab.LAN, 80)
		serveName(b, lab.FW, 81)
		b.WeirRun(b.Rules(fmt.Sprintf(pppoeUplinkRules, password, lib.SecondPeer)))
		awaitUplinks(b, first, second)
		expectName(b, "8081", fetch(b, lab.LAN, lib.FarHost+":8081"), lab.WAN)
		wan := listenOn(b, lab.WAN, "isp0", far)
		expectName(b, "8080", fetch(b, lab.LAN, lib.FarHost+":8080"), lib.ISP)
		const from = "--interface"
		for range 2 {
			expectName(b, "80", fetch(b, lib.ISP, lib.SecondClient+":80", from, lib.FarHost), lab.LAN)
			expectName(b, "81", fetch(b, lib.ISP, lib.SecondClient+":81", from, lib.FarHost), lab.FW)
		}
		b.Run(lib.ISP, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", "-I", lib.FarHost, lib.SecondClient)
		server := b.Listen(lib.ISP, 5201, "iperf3", "-s", "-1", "-p", "5201")
		b.Run(lab.LAN, "iperf3", "-c", lib.FarHost, "-p", "5201", "-n", "8M")
		server.Wait(10*time.Second, 0)
		wan.end("reply-to and route-to")
		if out, err := b.Try(lib.ISP, "curl", "-s", "-m", "1", from, lib.FarHost, "http://"+lib.SecondClient+":82/"); err == nil {
			b.Errorf("without reply-to %q answers by the second uplink", out)
		}
		b.Weir("pppoe", "down", "ppp0")
		b.Until(5*time.Second, "ppp0 is down", func() bool { return uplink(b, "ppp0").State == control.PPPoEDown })
		expectName(b, "8081 by the second uplink", fetch(b, lab.LAN, lib.FarHost+":8081"), lib.ISP)
		b.Weir("pppoe", "reconnect", "ppp0")
		awaitUplinks(b, first, second)
		expectName(b, "8081 again", fetch(b, lab.LAN, lib.FarHost+":8081"), lab.WAN)
	})
}

// uplink returns what weir says about a PPPoE interface.
func uplink(b *lib.Box, name string) control.PPPoE {
	b.Helper()
	for _, s := range lib.WeirJSON[[]control.PPPoE](b, "pppoe", "status") {
		if s.Interface == name {
			return s
		}
	}
	b.Fatalf("weir pppoe status has no %s", name)
	return control.PPPoE{}
}

// awaitUplinks waits until both sessions are up at both ends.
func awaitUplinks(b *lib.Box, first, second *lib.Provider) {
	b.Helper()
	for name, p := range map[string]*lib.Provider{"ppp0": first, "ppp1": second} {
		b.Until(20*time.Second, name+" is up", func() bool {
			s := uplink(b, name)
			return s.State == control.PPPoEUp && s.IPv4.IsValid()
		})
		p.Await(uplink(b, name).Session)
	}
}
