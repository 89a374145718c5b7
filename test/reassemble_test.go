package test

import (
	"strings"
	"testing"

	"weir/internal/lab"
	"weir/test/lib"
)

// pieceRules let fragments pass by rules of their own.
const pieceRules = `
set skip on lo
set reassemble no
block
pass inet proto icmp icmp-type echoreq
pass inet6 proto icmp6 icmp6-type { echoreq, neighbrsol, neighbradv }
pass out inet proto icmp icmp-type echorep no state
pass out inet6 proto icmp6 icmp6-type echorep no state
pass inet proto icmp fragment label "pieces"
pass inet6 proto icmp6 fragment label "pieces of IPv6"
`

//	lan ═══ pings of 3,000 bytes ═══▶ fw ═══▶ wan, and to fw itself
//
// With set reassemble no, fragments meet the rules each for itself: without rules for them
// nothing fragmented passes, in any direction.
func TestReassembleNo(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.IP(lab.WAN, "route add 192.168.1.0/24 via "+fwWAN, "route add fd00:1::/64 via "+fwWAN6)
		rules := b.Rules(pieceRules)
		daemon := b.WeirRun(rules)
		ping := func(to, size string) bool {
			b.Helper()
			out, err := b.Try(lab.LAN, "ping", "-n", "-c", "2", "-i", "0.2", "-W", "1", "-s", size, to)
			return err == nil && strings.Contains(out, " 2 received")
		}
		for _, to := range []string{wanHost, wanHost6, fwLAN, fwLAN6} {
			if !ping(to, "56") || !ping(to, "3000") {
				b.Errorf("%s does not answer", to)
			}
		}
		for label, least := range map[string]uint64{"pieces": 3 * 2 * 2, "pieces of IPv6": 3 * 2 * 2} {
			if n := b.Rule(`label "` + label + `"`).Packets; n < least {
				b.Errorf("%d packets of %s", n, label)
			}
		}
		without := b.Rules(strings.ReplaceAll(pieceRules, " fragment ", " tagged none "))
		b.Weir("load", without)
		for _, to := range []string{wanHost, wanHost6, fwLAN, fwLAN6} {
			if !ping(to, "56") || ping(to, "3000") {
				b.Errorf("%s: packets of 56 bytes should be answered, fragments not", to)
			}
		}
		b.Weir("load", b.Rules(strings.ReplaceAll(pieceRules, "reassemble no", "reassemble yes")))
		for _, to := range []string{wanHost, wanHost6, fwLAN, fwLAN6} {
			if !ping(to, "3000") {
				b.Errorf("with set reassemble yes, %s does not answer", to)
			}
		}
		b.Weir("load", rules)
		if !ping(wanHost, "3000") {
			b.Error("loaded again, it does not answer")
		}
		if n := strings.Count(daemon.Said(), "replaced in place"); n != 3 {
			b.Errorf("%d of 3 loads were in place:\n%s", n, daemon.Said())
		}
	})
}
