package test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// onceRules let the LAN in once for each of two services, in an anchor and outside.
const onceRules = `
set skip on lo
block return
pass in on lan0 proto tcp from any to (lan0) port 8000 once label main
anchor helper {
	pass in on lan0 proto tcp to lan0 port 8001 once label helper
}
pass in on lan0 proto udp to port 9 once label flood
`

//	lan ── curl, and again ──▶ fw: pass in … once
//
// A rule with once passes one connection. It stays used when the daemon starts again, is
// killed, or resolves the rules for other addresses. A load lets it pass another one.
func TestOnce(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		file := b.Rules(onceRules)
		daemon := b.WeirRun(file)
		for _, port := range []uint16{8000, 8001} {
			b.ServeHello(lab.FW, port)
		}
		ask := func(when string, want string) {
			b.Helper()
			for _, port := range []int{8000, 8001} {
				out, _ := b.Try(lab.LAN, "curl", "-s", "-m", "5", "-o", "/dev/null", "-w", "%{exitcode}", fmt.Sprintf("http://%s:%d/", fwLAN, port))
				if out != want {
					b.Errorf("%s, curl to port %d ends with status %s, not %s", when, port, out, want)
				}
			}
		}
		const served, refused = "0", "7"
		ask("at first", served)
		ask("at the second time", refused)
		daemon.Kill()
		ask("without a daemon", refused)
		b.WeirRun(file)
		ask("with the next daemon", refused)
		b.IP(lab.FW, "address add 192.168.1.77/24 dev lan0") // lan0 in the anchor's rule means this address, too
		b.Until(10*time.Second, "the rules are resolved again", func() bool { return strings.Contains(b.Weir("rules"), "192.168.1.77") })
		ask("after an address came", refused)
		b.Weir("load", file)
		ask("after a load", served)
		ask("once more", refused)
	})
}

//	a program ── weir anchor load ──▶ fw: anchor "helper/*"
//
// A program lets one connection in at a time, as ftp-proxy does. Its rules begin anew when it
// loads them again, also with the same text; those of other anchors do not.
func TestOnceOfPrograms(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.WeirRun("set skip on lo\nblock return\nanchor \"helper/*\"\n")
		b.ServeHello(lab.FW, 8000)
		b.ServeHello(lab.FW, 8001)
		load := func(port int) {
			b.Weir("anchor", "load", fmt.Sprintf("helper/%d", port), b.Rules(fmt.Sprintf("pass in quick on lan0 proto tcp to (lan0) port %d once\n", port)))
		}
		ask := func(when string, port int, want string) {
			b.Helper()
			out, _ := b.Try(lab.LAN, "curl", "-s", "-m", "5", "-o", "/dev/null", "-w", "%{exitcode}", fmt.Sprintf("http://%s:%d/", fwLAN, port))
			if out != want {
				b.Errorf("%s, curl to port %d ends with status %s, not %s", when, port, out, want)
			}
		}
		load(8000)
		load(8001)
		ask("at first", 8000, "0")
		ask("at the second time", 8000, "7")
		load(8000)
		ask("loaded again", 8000, "0")
		ask("loaded first", 8001, "0")
		load(8000)
		ask("another is loaded again", 8001, "7")
		b.Weir("anchor", "flush", "helper/8000")
		ask("flushed", 8000, "7")
		load(8000)
		ask("loaded after a flush", 8000, "0")
		ask("and used", 8000, "7")
	})
}

//	lan ══ 3,000 flows on all cores ══▶ fw: pass in … once
//
// However many packets come at once, one makes a state.
func TestOnceOnAllCores(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(onceRules)
		for round := range 3 {
			var floods sync.WaitGroup
			for range 3 {
				floods.Go(func() { b.ManyUDP(lab.LAN, fwLAN, 9, 1000, 20000) })
			}
			floods.Wait()
			if states := b.States("proto", "udp"); len(states) != round+1 {
				b.Errorf("%d states after %d loads:\n%s", len(states), round, b.Weir("states", "proto", "udp"))
			}
			if r := b.Rule("label \"flood\""); r.StateCreations != 1 {
				b.Errorf("the rule has made %d states after %d loads", r.StateCreations, round)
			}
			b.Weir("load", b.Rules(onceRules))
		}
	})
}
