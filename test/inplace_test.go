package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/test/lib"
)

//	lan ── ping -6, neighbours forgotten ──▶ fw: load, load, load
//
// Whether packets pass before the rules, and what limiters admit, is changed under traffic, without loading
// programs.
func TestOptionsInPlace(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		rules := func(options string, limit int) string {
			return fmt.Sprintf(`%sset skip on lo
state limiter few id 1 limit %d rate 100/1
block
pass in on lan0 inet6 proto icmp6 icmp6-type echoreq state limiter few (block)
pass out
`, options, limit)
		}
		ping := func() bool {
			_, err := b.Try(lab.LAN, "ping", "-6", "-n", "-c", "1", "-W", "1", fwLAN6)
			return err == nil
		}
		forget := func() {
			for _, host := range []string{lab.FW, lab.LAN} { // a search by the gateway tells the host its address
				b.IP(host, "neigh flush all")
			}
		}
		daemon := b.WeirRun(b.Rules(rules("", 5)))
		forget()
		b.Until(10*time.Second, "the box answers a ping", ping)
		b.Weir("load", b.Rules(rules("set implicit-pass no\n", 5)))
		forget()
		before := b.Packets("lan0", reason.Block)
		b.Until(10*time.Second, "searches for the box's address are blocked", func() bool {
			if ping() {
				b.Fatal("the box answers although no rule lets the search for its address in")
			}
			return b.Packets("lan0", reason.Block) >= before+2
		})
		b.Weir("load", b.Rules(rules("", 7)))
		forget()
		b.Until(10*time.Second, "the box answers a ping again", ping)
		if got := limiterOf(b, "state", "few"); got.Limit != 7 || got.States == 0 {
			b.Errorf("the limiter has %d states of %d, want some of 7", got.States, got.Limit)
		}
		if n := strings.Count(daemon.Said(), "replaced in place"); n != 2 {
			b.Errorf("%d of 2 loads were in place:\n%s", n, daemon.Said())
		}
	})
}
