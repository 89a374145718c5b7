package dataplane

import (
	"net/netip"
	"testing"

	"weir/internal/fw/reason"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/ruleset/rulestest"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// SetPools makes a running program translate to an interface's new addresses.
func TestSetPools(t *testing.T) {
	host := func(addresses ...string) ruleset.Snapshot {
		i := ruleset.Interface{Name: "wan0", Index: 4}
		for _, a := range addresses {
			i.Addresses = append(i.Addresses, ruleset.Address{Prefix: netip.MustParsePrefix(a)})
		}
		return ruleset.Snapshot{Interfaces: []ruleset.Interface{i}}
	}
	rs := &resolve.Ruleset{Rules: []*resolve.Rule{{
		Action: ast.Match, Interface: resolve.Interface{Any: true},
		Nat: &resolve.Translation{Addrs: []resolve.Address{{Kind: resolve.InterfaceAddress, Interface: "wan0"}}},
	}}}
	p := must(ruleset.Compile(rs, host("203.0.113.1/24")))(t)
	h := newRulesHarness(t, ruleEntries(p, 0), map[string]any{})
	h.load(t, p)
	d := &Dataplane{objects: h.objects}
	for _, step := range []struct {
		host ruleset.Snapshot
		want []string // "" is none
	}{
		{host("203.0.113.1/24"), []string{"203.0.113.1", "203.0.113.1"}},
		{host("203.0.113.7/24"), []string{"203.0.113.7"}},
		{host("203.0.113.8/24", "203.0.113.9/24"), []string{"203.0.113.8", "203.0.113.9", "203.0.113.8"}},
		{host(), []string{"", ""}},
	} {
		check(t, d.SetPools(must(p.Refill(step.host))(t)))
		for _, want := range step.want {
			a := h.evaluate(t, rulestest.Packet{
				Direction: ast.Out, Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"),
			})
			got := ""
			if a.Nat != nil {
				got = a.Nat.Addr.String()
			}
			if got != want || (a.Verdict == reason.NATAddress) != (want == "") {
				t.Errorf("%v: translated to %q (%v), want %q", step.host, got, a.Verdict, want)
			}
		}
	}
}
