package cli

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/control"
)

// What is said of a prefix: how long it is valid, who has it, and why somebody has none.
func TestPrintPrefix(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	prefixes := func(texts ...string) (all []netip.Prefix) {
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	for _, test := range []struct {
		name string
		is   control.PPPoEPrefix
		want string
	}{
		{"none", control.PPPoEPrefix{Why: "← ADVERTISE: NoPrefixAvail"}, "  no prefix yet: ← ADVERTISE: NoPrefixAvail\n"},
		{"one", control.PPPoEPrefix{
			Delegated: []control.DelegatedPrefix{{Prefix: prefixes("2001:db8::/56")[0], Preferred: now, Valid: now.Add(time.Hour)}}, Renew: now.Add(time.Minute),
			DNS: []netip.Addr{netip.MustParseAddr("2001:db8::53")},
			Links: []control.DelegatedLink{
				{Interface: "lan0", Prefixes: prefixes("2001:db8::/64"), Withdrawn: prefixes("2001:db8:1::/64")}, {Interface: "lan1", Why: "there is none"},
			},
		}, `  prefix 2001:db8::/56, preferred no more, valid for 1h0m0s, asked again in 1m0s
  name server 2001:db8::53 for hosts
  lan0 has 2001:db8::/64
  lan0 had 2001:db8:1::/64: withdrawn
  lan1: there is none
`},
		{"for ever", control.PPPoEPrefix{Delegated: []control.DelegatedPrefix{{Prefix: prefixes("2001:db8::/56")[0]}}}, "  prefix 2001:db8::/56, preferred for ever, valid for ever\n"},
	} {
		var out strings.Builder
		printPrefix(&out, &test.is, now)
		if out.String() != test.want {
			t.Errorf("%s:\n%swant\n%s", test.name, out.String(), test.want)
		}
	}
}
