package ruleset_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fw/ruleset"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// routeTo returns the rule "pass in route-to { (wan0 203.0.113.1), (wan1 …) }".
func routeTo(kind resolve.RouteKind, hops ...resolve.NextHop) *resolve.Ruleset {
	return &resolve.Ruleset{Rules: []*resolve.Rule{{
		Action: ast.Pass, Direction: ast.In, Interface: resolve.Interface{Any: true},
		Route: &resolve.Route{Kind: kind, Hops: hops},
	}}}
}

// The rows of next hops have the index of the interface that the rule names, and follow
// it. While there is no such interface, no packet leaves by another one.
func TestNextHopsFollowInterfaces(t *testing.T) {
	at := func(index uint32) ruleset.Snapshot {
		s := wan("203.0.113.2/24")
		s.Interfaces[0].Index = index
		return s
	}
	p, err := ruleset.Compile(routeTo(resolve.ReplyTo,
		resolve.NextHop{Interface: "wan0", Addr: address("203.0.113.1/32")},
		resolve.NextHop{Interface: "wan0"},
		resolve.NextHop{Interface: "wan1", Addr: address("2001:db8::1/128")},
		resolve.NextHop{Addr: address("192.0.2.0/30")},
	), at(4))
	if err != nil {
		t.Fatal(err)
	}
	if r := p.Rules[0]; r.Route != ruleset.ReplyTo || r.RoutePool != 0 {
		t.Errorf("route %d, pool %d", r.Route, r.RoutePool)
	}
	row := func(first string, turn, count uint64, index uint32) ruleset.Row {
		return ruleset.Row{First: netip.MustParseAddr(first), Turn: turn, Count: count, Interface: index}
	}
	const missing = ^uint32(0)
	for _, index := range []uint32{4, 9} {
		if _, err := p.Refill(at(index)); err != nil {
			t.Fatal(err)
		}
		rows := func(run ruleset.Run) []ruleset.Row { return p.Rows[run.First:][:run.Count] }
		want4 := []ruleset.Row{row("203.0.113.1", 0, 1, index), row("0.0.0.0", 1, 1, index), row("192.0.2.0", 2, 4, 0)}
		want6 := []ruleset.Row{row("::", 0, 1, index), row("2001:db8::1", 1, 1, missing)}
		same := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
		if diff := cmp.Diff(want4, rows(p.Pools[0].Rows4), same); diff != "" {
			t.Errorf("IPv4, interface %d (-want +got):\n%s", index, diff)
		}
		if diff := cmp.Diff(want6, rows(p.Pools[0].Rows6), same); diff != "" {
			t.Errorf("IPv6, interface %d (-want +got):\n%s", index, diff)
		}
	}
}

// A gateway that is down is not chosen, unless all of its family are. The others keep their
// order.
func TestGatewaysAreDown(t *testing.T) {
	rules := routeTo(resolve.RouteTo,
		resolve.NextHop{Interface: "wan0", Addr: address("203.0.113.1/32")},
		resolve.NextHop{Addr: address("192.0.2.1/32")},
		resolve.NextHop{Addr: address("192.0.2.2/32")},
		resolve.NextHop{Addr: address("2001:db8::1/128")},
		resolve.NextHop{Addr: address("192.0.2.8/30")},
	)
	hop := func(name, addr string) ruleset.Hop {
		return ruleset.Hop{Interface: name, Addr: netip.MustParseAddr(addr)}
	}
	all := []ruleset.Hop{hop("wan0", "203.0.113.1"), hop("", "192.0.2.1"), hop("", "192.0.2.2"), hop("", "2001:db8::1")}
	if diff := cmp.Diff(all, ruleset.HopsOf(rules.Rules), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("the gateways (-want +got):\n%s", diff)
	}
	s := wan("203.0.113.2/24")
	p, err := ruleset.Compile(rules, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		down []ruleset.Hop
		want []string
	}{
		{nil, []string{"203.0.113.1", "192.0.2.1", "192.0.2.2", "192.0.2.8", "2001:db8::1"}},
		{all[:1], []string{"192.0.2.1", "192.0.2.2", "192.0.2.8", "2001:db8::1"}},
		{[]ruleset.Hop{hop("", "203.0.113.1")}, []string{"203.0.113.1", "192.0.2.1", "192.0.2.2", "192.0.2.8", "2001:db8::1"}}, // another interface
		{all[1:], []string{"203.0.113.1", "192.0.2.8", "2001:db8::1"}},                                                         // the only one of its family
		{all[:3], []string{"192.0.2.8", "2001:db8::1"}},
		{nil, []string{"203.0.113.1", "192.0.2.1", "192.0.2.2", "192.0.2.8", "2001:db8::1"}},
	} {
		s.Down = make(map[ruleset.Hop]bool)
		for _, hop := range test.down {
			s.Down[hop] = true
		}
		if _, err := p.Refill(s); err != nil {
			t.Fatal(err)
		}
		var got []string
		turn := uint64(0)
		for _, run := range []ruleset.Run{p.Pools[0].Rows4, p.Pools[0].Rows6} {
			for i, row := range p.Rows[run.First:][:run.Count] {
				got = append(got, row.First.String())
				if i == 0 {
					turn = 0
				}
				if row.Turn != turn {
					t.Errorf("%v down: %s has turn %d, want %d", test.down, row.First, row.Turn, turn)
				}
				turn += row.Count
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v down (-want +got):\n%s", test.down, diff)
		}
	}
}

// Rules that are replaced under traffic keep their next hops if these are the same.
func TestReplaceKeepsNextHops(t *testing.T) {
	hop := func(a string) resolve.NextHop { return resolve.NextHop{Interface: "wan0", Addr: address(a)} }
	p, err := ruleset.Compile(routeTo(resolve.RouteTo, hop("203.0.113.1/32")), wan())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		gateway string
		index   uint32 // of the rule
		pool    uint32
	}{{"203.0.113.1/32", 0, 0}, {"203.0.113.7/32", 1, 1}} {
		q, err := p.Replace(routeTo(resolve.RouteTo, hop(test.gateway)), wan(), []int{0})
		if err != nil {
			t.Fatal(err)
		}
		if r := q.Rules[q.Order[0]]; q.Order[0] != test.index || r.RoutePool != test.pool || r.Route != ruleset.RouteTo {
			t.Errorf("%s: rule %d, pool %d, route %d", test.gateway, q.Order[0], r.RoutePool, r.Route)
		}
	}
}

// With prefer-ipv6-nexthop IPv4 packets take next hops of both families in turn. Other types
// take those of IPv4 only if there are none of IPv6, or all of these are down.
func TestNextHopsOfIPv6ForIPv4(t *testing.T) {
	const four, six, six2 = "203.0.113.1", "2001:db8::1", "2001:db8::2"
	down := func(addrs ...string) map[ruleset.Hop]bool {
		all := make(map[ruleset.Hop]bool)
		for _, a := range addrs {
			all[ruleset.Hop{Addr: netip.MustParseAddr(a)}] = true
		}
		return all
	}
	for _, test := range []struct {
		how        resolve.PoolType
		hops, down []string
		for4, for6 []string
	}{
		{resolve.RoundRobin, []string{six, four, six2}, nil, []string{six, four, six2}, []string{six, six2}},
		{resolve.LeastStates, []string{six, four}, []string{six}, []string{four}, []string{six}},
		{resolve.RoundRobin, []string{six, four}, []string{six, four}, []string{six, four}, []string{six}},
		{resolve.Random, []string{four, six, six2}, nil, []string{six, six2}, []string{six, six2}},
		{resolve.Random, []string{four, six, six2}, []string{six2}, []string{six}, []string{six}},
		{resolve.SourceHash, []string{four, six}, []string{six}, []string{four}, []string{six}},
		{resolve.SourceHash, []string{four, six}, []string{six, four}, []string{six}, []string{six}},
		{resolve.Random, []string{four}, nil, []string{four}, nil},
	} {
		var hops []resolve.NextHop
		for _, h := range test.hops {
			a := netip.MustParseAddr(h)
			hops = append(hops, resolve.NextHop{Addr: address(netip.PrefixFrom(a, a.BitLen()).String())})
		}
		rules := routeTo(resolve.RouteTo, hops...)
		rules.Rules[0].Route.PreferIPv6, rules.Rules[0].Route.Choice = true, resolve.Choice{Type: test.how}
		s := wan("203.0.113.2/24")
		s.Down = down(test.down...)
		p, err := ruleset.Compile(rules, s)
		if err != nil {
			t.Fatal(err)
		}
		addrs := func(run ruleset.Run) (all []string) {
			for _, r := range p.Rows[run.First:][:run.Count] {
				all = append(all, r.First.String())
			}
			return all
		}
		if diff := cmp.Diff([][]string{test.for4, test.for6}, [][]string{addrs(p.Pools[0].Rows4), addrs(p.Pools[0].Rows6)}); diff != "" {
			t.Errorf("%v of %q, down %q (-want +got):\n%s", test.how, test.hops, test.down, diff)
		}
	}
}
