package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/killpoint"
	"weir/internal/lab"
	"weir/test/lib"
)

// sessionFloods are packets through a session that may not lose one: of the LAN, translated, over IPv6, and of the box itself.
type sessionFloods []*lib.Flood

func startSessionFloods(b *lib.Box) sessionFloods {
	b.Helper()
	return sessionFloods{
		b.FloodEvery(lab.LAN, lib.ProviderPeer, 4*time.Millisecond), b.FloodEvery(lab.LAN, lib.ProviderPeer6, 10*time.Millisecond),
		b.FloodEvery(lab.FW, lib.ProviderPeer, 10*time.Millisecond),
	}
}

func (f sessionFloods) allAnswered() {
	for _, one := range f {
		one.AllAnswered(100)
	}
}

//	lan ── lan0 fw wan0 ══ ppp0 in a PPPoE session ══ wan, a concentrator     fw: an earlier layout ─▶ this version ─▶ back
//
// An upgrade to another layout of the states under traffic loses no packet of a PPPoE session, and the session goes on: the concentrator
// sees no other one. The same for the way back, and where the new version is killed in the middle and started again.
func TestUpgradeKeepsPPPoE(t *testing.T) {
	weir.Both(t, func(b *lib.Box) {
		p, password := b.Provider(1500)
		b.IP(lab.FW, "route del default", "-6 route del default")
		old, rules := oldWeir(b, lastLayout), b.Rules(fmt.Sprintf(`set skip on lo
pppoe ppp0 on wan0 user me password file "%s"
match out on ppp0 inet from (lan0:network) nat-to (ppp0)
block
pass in on lan0
pass out on ppp0
`, password))
		runOld(b, old, rules)
		b.Until(20*time.Second, "there is a session", func() bool {
			all := p.Sessions()
			return len(all) == 1 && all[0].IPv4.IsValid() && all[0].ID6 != 0
		})
		first := p.Sessions()[0]
		p.Await(fmt.Sprintf("0x%04x", first.ID))
		goesOn := func(when string) {
			b.Helper()
			if up := awaitPPPoE(b, "up"); up.Session != fmt.Sprintf("0x%04x", first.ID) {
				b.Errorf("%s: weir has session %s, it was 0x%04x", when, up.Session, first.ID)
			}
			if all := p.Sessions(); len(all) != 1 || all[0] != first {
				b.Errorf("%s: the concentrator has %+v, it had %+v", when, all, first)
			}
		}
		b.Until(20*time.Second, "packets go through the session", func() bool {
			for _, to := range []string{lib.ProviderPeer6, lib.ProviderPeer} { // the old daemon sets addresses one after the other
				if _, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", to); err != nil {
					return false
				}
			}
			return true
		})
		b.Ping(lab.LAN, lib.ProviderPeer, 1)
		b.Ping(lab.FW, lib.ProviderPeer, 1)

		floods := startSessionFloods(b)
		b.WeirRun(rules)
		goesOn("after the upgrade")
		floods.allAnswered()

		floods = startSessionFloods(b)
		downgrade(b, old, rules, lastLayout)
		time.Sleep(time.Second)
		floods.allAnswered()

		list := filepath.Join(b.TempDir(), "steps")
		steps := upgradeSteps(b, list, rules)
		goesOn("after the second upgrade")
		dying := map[string][]string{"tcx": {"copy the states", "/generation"}, "xdp": {"copy the states", "replace a program"}}
		for _, step := range dying[b.Hook] {
			at := 1 + slices.IndexFunc(steps, func(s string) bool {
				return strings.HasPrefix(s, step) || strings.HasPrefix(s, "rename to") && strings.HasSuffix(s, step)
			})
			if at == 0 {
				b.Fatalf("no step %q in %q", step, steps)
			}
			downgrade(b, old, rules, lastLayout)
			if err := os.WriteFile(list, []byte(fmt.Sprintln(at)), 0o600); err != nil {
				b.Fatal(err)
			}
			floods := startSessionFloods(b)
			w := b.WeirUnder(killpoint.Variable+"="+list, "run", "--hook", b.Hook, "-f", rules)
			b.Until(lib.StartPatience, "weir is killed", func() bool { return !w.Running() })
			if !w.Killed() {
				b.Fatalf("weir ended by itself:\n%s", w.Said())
			}
			time.Sleep(2 * time.Second) // the concentrator gives a client up in less that does not answer
			b.WeirRun(rules)
			goesOn("killed at " + step + ", and started again")
			floods.allAnswered()
		}
	})
}
