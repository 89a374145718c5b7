package lint

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"weir/pf/ast"
)

// TestReplacedSources translates random packets by random rules of nat, and checks that none of them then matches
// a rule that is said never to match.
func TestReplacedSources(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 3))
	network := func() string {
		return pick(random, "10.0.0.0/8", "10.1.0.0/16", "10.1.1.0/24", "10.1.1.1", "10.2.0.0/16", "192.0.2.0/24", "192.0.2.1")
	}
	conditions := func() string {
		text := " on " + pick(random, "em0", "em0", "em1") + " inet" + pick(random, "", "", " proto tcp", " proto udp") + " from " + network()
		return text + " to " + pick(random, "any", "any", network())
	}
	said, unsaid := 0, 0
	for range 400 {
		var src strings.Builder
		for range 1 + random.IntN(4) {
			if random.IntN(6) == 0 {
				fmt.Fprintln(&src, "no nat"+conditions())
				continue
			}
			fmt.Fprintln(&src, "nat"+conditions()+" -> "+pick(random, "192.0.2.1", "192.0.2.9", "10.1.1.9", "198.51.100.1"))
		}
		for range 8 {
			fmt.Fprintln(&src, pick(random, "pass", "block")+" out"+conditions())
		}
		rules, _ := load(t, src.String())
		sources := sourcesOf(rules.Translations)
		for range 200 {
			p := randomPacket(random)
			p.direction, p.family = ast.Out, ast.Inet
			p.src, p.dst = address(random), address(random)
			for _, n := range rules.Translations {
				if matches(&n.Rule, p) {
					if !n.No {
						p.src = n.Nat.Addrs[0].Prefix.Addr()
					}
					break
				}
			}
			for _, r := range rules.Rules {
				if matches(r, p) && replacing(rules, sources, r) != nil {
					t.Fatalf("%s\nis said never to match, but does, in\n%s", r.Text, src.String())
				}
			}
		}
		for _, r := range rules.Rules {
			if replacing(rules, sources, r) != nil {
				said++
			} else {
				unsaid++
			}
		}
	}
	t.Logf("%d rules are said never to match, %d not", said, unsaid)
	if said < 100 || unsaid < 100 {
		t.Error("the test shows little")
	}
}

func address(random *rand.Rand) netip.Addr {
	return netip.MustParseAddr(pick(random, "10.0.0.1", "10.1.0.1", "10.1.1.1", "10.1.1.9", "10.2.0.1", "192.0.2.1", "192.0.2.9", "198.51.100.1"))
}
