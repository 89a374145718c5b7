package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/control"
	"weir/internal/lab"
	"weir/test/lib"
)

const pppoeBelowRules = `set skip on { br0 wan0 dsl1 }
pppoe ppp0 on dsl0 user me mtu 1500 password file "%s" script "%s"
block
pass out on ppp0
`

//	fw dsl0 ══ dsl1 in br0, with wan0 ══ wan, a concentrator
//
// The interface below a session comes late, without a carrier, and becomes another one. The session follows it, and the script is
// told of each end once.
func TestPPPoEBelow(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		p, password := b.Provider(1500)
		b.IP(lab.FW, "route del default", "-6 route del default", "address flush dev wan0", "link add br0 type bridge", "link set wan0 master br0 mtu 1508", "link set br0 up")
		b.IP(lab.WAN, "link set eth0 mtu 1508")
		told, script := filepath.Join(b.TempDir(), "told"), filepath.Join(b.TempDir(), "script")
		if err := os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\necho $1 >>%s\n[ ! -e $0.slow ] || sleep 12\n", told), 0o700); err != nil { //nolint:gosec // a script
			b.Fatal(err)
		}
		create := func() {
			b.Helper()
			b.IP(lab.FW, "link add dsl0 type veth peer name dsl1", "link set dsl1 master br0 mtu 1508", "link set dsl0 up")
		}
		says := func(text string) {
			b.Helper()
			b.Until(lib.Scaled(5*time.Second), "weir pppoe status says "+text, func() bool { return strings.Contains(pppoeStatus(b).Why, text) })
		}
		within := func(most time.Duration, what string, so func(s *control.PPPoE) bool) {
			b.Helper()
			began := time.Now()
			b.Until(30*time.Second, what, func() bool {
				s := pppoeStatus(b)
				return s.State == control.PPPoEUp && s.IPv4.IsValid() && so(&s)
			})
			p.Await(pppoeStatus(b).Session)
			b.Ping(lab.FW, lib.ProviderPeer, 3)
			took := time.Since(began)
			if b.Logf("%s after %v", what, took); took > lib.Scaled(most) {
				b.Error("that is too late")
			}
		}
		any := func(*control.PPPoE) bool { return true }
		rules := b.Rules(fmt.Sprintf(pppoeBelowRules, password, script))
		daemon := b.WeirRun(rules)
		b.Tell("in the dark", func(b *lib.Box) {
			says("find dsl0")
			create()
			says("dsl0 has no carrier")
			b.IP(lab.FW, "link set dsl1 up")
			within(15*time.Second, "a session", any)
		})
		b.Tell("room", func(b *lib.Box) {
			if s := pppoeStatus(b); s.MTU != 1492 || !strings.Contains(s.Small, "1492 are asked for") {
				b.Errorf("the session: %+v", s)
			}
			b.IP(lab.FW, "link set dsl0 mtu 1508")
			within(10*time.Second, "packets of 1,500 bytes", func(s *control.PPPoE) bool { return s.MTU == 1500 && s.Small == "" })
			b.IP(lab.FW, "link set dsl0 mtu 1500")
			within(10*time.Second, "packets of 1,492 bytes", func(s *control.PPPoE) bool { return s.MTU == 1492 && s.Small != "" })
		})
		b.Tell("another Ethernet address", func(b *lib.Box) {
			before := pppoeStatus(b).Session
			b.IP(lab.FW, "link set dsl0 address 02:77:65:00:07:07")
			within(10*time.Second, "another session", func(s *control.PPPoE) bool { return s.Session != before })
			if all := p.Sessions(); len(all) == 0 || all[len(all)-1].Peer.String() != "02:77:65:00:07:07" {
				b.Errorf("the concentrator has %+v", all)
			}
		})
		b.Tell("another interface", func(b *lib.Box) {
			b.IP(lab.FW, "link del dsl0")
			b.Until(lib.Scaled(5*time.Second), "ppp0 has no carrier", func() bool {
				return strings.Contains(b.Run(lab.FW, "ip", "-o", "link", "show", "ppp0"), "NO-CARRIER")
			})
			create()
			b.IP(lab.FW, "link set dsl1 up")
			within(10*time.Second, "a session by the new interface", any)
		})
		daemon.Kill()
		b.IP(lab.FW, "link set dsl1 down")
		before := read(b, told)
		daemon = b.WeirRun(rules)
		b.Tell("a start in the dark", func(b *lib.Box) {
			says("dsl0 has no carrier; the session is kept")
			b.Until(lib.Scaled(5*time.Second), "the script is told that the session does not carry", func() bool { return read(b, told) == before+"down\n" })
			b.IP(lab.FW, "link set dsl1 up")
			within(15*time.Second, "a session", any)
		})
		b.Tell("a session that is kept in vain", func(b *lib.Box) {
			before := pppoeStatus(b).Session
			b.IP(lab.FW, "link set dsl1 down")
			says("dsl0 has no carrier; the session is kept")
			b.Until(lib.Scaled(10*time.Second), "the concentrator has given it up", func() bool { return len(p.Sessions()) == 0 })
			b.IP(lab.FW, "link set dsl1 up")
			within(15*time.Second, "another session", func(s *control.PPPoE) bool { return s.Session != before })
		})
		b.Tell("a script that takes long", func(b *lib.Box) {
			if err := os.WriteFile(script+".slow", nil, 0o600); err != nil {
				b.Fatal(err)
			}
			for range 2 {
				before := pppoeStatus(b).Session
				b.Weir("pppoe", "reconnect", "ppp0")
				within(6*time.Second, "another session", func(s *control.PPPoE) bool { return s.Session != before })
			}
			os.Remove(script + ".slow") //nolint:errcheck // the next line says so
			time.Sleep(15 * time.Second)
			b.Ping(lab.FW, lib.ProviderPeer, 3)
		})
		b.Tell("a session that ends without a daemon", func(b *lib.Box) {
			session, before := pppoeStatus(b).Session, read(b, told)
			daemon.Kill()
			p.End(session, true)
			daemon = b.WeirRun(rules)
			within(15*time.Second, "another session", any)
			b.Until(lib.Scaled(5*time.Second), "the script is told of the end and of the other session", func() bool {
				return strings.HasPrefix(read(b, told), before+"down\nup\n")
			})
		})
		b.Tell("weir stop", func(b *lib.Box) {
			before := read(b, told)
			b.Weir("stop")
			if now := read(b, told); now != before+"down\n" {
				b.Errorf("the script was told %q, want \"down\" in the end", now)
			}
		})
		if all := read(b, told); !strings.HasPrefix(all, "up\n") || strings.Contains(all, "down\ndown") || strings.Count(all, "down\nup") != strings.Count(all, "down")-1 {
			b.Errorf("the script was told %q", all)
		}
	})
}

func read(b *lib.Box, file string) string {
	b.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}
