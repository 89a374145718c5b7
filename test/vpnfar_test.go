package test

import (
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

//	lan ── fw, a weir ══ wg0 ══ wan, a weir as well
//
// Each end asks the other, inside the tunnel, what it is configured as, and finds what does not fit. Nobody is told unless
// the statement says so.
func TestVPNCheckFar(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		_, _, rulesWith := twoSites(b, "show-summary")
		b.Until(10*time.Second, "the far end listens", func() bool {
			out, _ := b.WeirStatus("vpn", "check", "far", "--far")
			return !strings.Contains(out, "it does not tell")
		})
		if out, status := b.WeirStatus("vpn", "check", "far", "--far"); status != 0 || strings.Count(out, "ok ") != 6 || !strings.Contains(out, "signature: peer far has signed the summary") {
			b.Errorf("nothing is wrong: %d\n%s", status, out)
		}
		says := func(rules, what string) {
			b.Helper()
			b.Weir("load", b.Rules(rules))
			b.Until(10*time.Second, "the far end is told: "+what, func() bool {
				out, err := b.Try(lab.WAN, string(weir), "vpn", "check", "near", "--far")
				return err != nil && strings.Contains(out, what)
			})
		}
		says(strings.Replace(rulesWith("show-summary"), "10.2.0.0/16", "10.2.0.0/16 192.168.1.0/24", 1), "wrong  networks: both ends say that 192.168.1.0/24 is behind the other one")
		says(strings.Replace(rulesWith("show-summary"), " endpoint ", " wide 2 endpoint ", 1), "wrong  wide: the other end has the link be wide, and this end does not")
		says(rulesWith("show-load"), "wrong  summary: it does not tell: it is no weir, its statement of this end has no show-summary, or its rules block TCP port 51820 (status 404)")
		says(rulesWith(""), "wrong  summary: it does not tell: ")
	})
}
