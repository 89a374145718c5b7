package test

import (
	"fmt"
	"strings"
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
		b.Tell("a cable is unplugged", func(b *lib.Box) {
			const dark = "wan0 has no carrier"
			b.IP(lab.WAN, "link set eth0 down")
			b.Until(lib.Scaled(3*time.Second), "ppp0 says that "+dark, func() bool {
				s := uplink(b, "ppp0")
				return s.State == control.PPPoEWaiting && strings.HasPrefix(s.Why, dark)
			})
			expectName(b, "8081 without the cable", fetch(b, lab.LAN, lib.FarHost+":8081"), lib.ISP)
			b.IP(lab.WAN, "link set eth0 up")
			began := time.Now() // the concentrator has given the session up by now
			awaitUplinks(b, first, second)
			if took := time.Since(began); took > lib.Scaled(15*time.Second) {
				b.Errorf("with the cable, there is a session after %v", took)
			}
			expectName(b, "8081 with the cable", fetch(b, lab.LAN, lib.FarHost+":8081"), lab.WAN)
		})
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

// pppoeTwinRules have two sessions on one interface.
const pppoeTwinRules = `pppoe ppp0 on wan0 user me password file "%[1]s"
pppoe ppp1 on wan0 user me password file "%[1]s" no route
block
pass out on { ppp0, ppp1 }
pass in on ppp1 reply-to (ppp1 192.0.2.1) inet proto icmp
`

//	fw wan0 ══ ppp0 and ppp1 ══ wan, a concentrator
//
// One interface has two sessions with one concentrator. Packets of each meet its own rules; one may begin anew and
// end while the other goes on.
func TestPPPoETwins(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		p, password := b.ProviderOfMany(1492)
		b.IP(lab.FW, "route del default", "-6 route del default")
		b.WeirRun(b.Rules(fmt.Sprintf(pppoeTwinRules, password)))
		names := []string{"ppp0", "ppp1"}
		isUp := func(name string) bool { s := uplink(b, name); return s.State == control.PPPoEUp && s.IPv4.IsValid() }
		for _, name := range names {
			b.Until(20*time.Second, name+" is up", func() bool { return isUp(name) })
		}
		if x, y := uplink(b, "ppp0"), uplink(b, "ppp1"); x.Session == y.Session || x.IPv4 == y.IPv4 || len(p.Sessions()) != 2 {
			b.Errorf("the sessions are %+v and %+v, the concentrator has %+v", x, y, p.Sessions())
		}
		for i, name := range append(names, "ppp0") {
			other := uplink(b, names[(i+1)%2])
			if before := uplink(b, name).Session; !p.Serves(before) { // it serves the latest one
				b.Weir("pppoe", "reconnect", name)
				b.Until(20*time.Second, name+" has another session", func() bool { return isUp(name) && uplink(b, name).Session != before })
				p.Await(uplink(b, name).Session)
			}
			b.Run(lab.FW, "ping", "-n", "-c", "2", "-i", "0.1", "-W", "2", "-I", name, lib.ProviderPeer)
			_, err := b.Try(lab.WAN, "ping", "-n", "-c", "2", "-i", "0.1", "-W", "0.5", uplink(b, name).IPv4.String())
			if passed := err == nil; passed != (name == "ppp1") {
				b.Errorf("pings that come in by %s pass: %t", name, passed)
			}
			if now := uplink(b, names[(i+1)%2]); now.State != control.PPPoEUp || now.Session != other.Session {
				b.Errorf("beside %s the other session is %+v, was %+v", name, now, other)
			}
		}
		served := uplink(b, "ppp0").Session
		b.Weir("pppoe", "down", "ppp1")
		b.Until(5*time.Second, "the concentrator has one session", func() bool { return len(p.Sessions()) == 1 })
		if now := uplink(b, "ppp0"); now.State != control.PPPoEUp || now.Session != served {
			b.Errorf("after the end of ppp1: %+v", now)
		}
		b.Run(lab.FW, "ping", "-n", "-c", "2", "-i", "0.1", "-W", "2", "-I", "ppp0", lib.ProviderPeer)
	})
}
