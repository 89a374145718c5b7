package ruleset_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/ruleset/rulestest"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// wan returns a host whose only interface has these addresses.
func wan(addresses ...string) ruleset.Snapshot {
	i := ruleset.Interface{Name: "wan0", Index: 4}
	for _, a := range addresses {
		i.Addresses = append(i.Addresses, ruleset.Address{Prefix: netip.MustParsePrefix(a)})
	}
	return ruleset.Snapshot{Interfaces: []ruleset.Interface{i}}
}

// natTo returns the rule "match out nat-to { (wan0) 192.0.2.9 }".
func natTo() *resolve.Ruleset {
	return &resolve.Ruleset{Rules: []*resolve.Rule{{
		Action: ast.Match, Direction: ast.Out, Interface: resolve.Interface{Any: true},
		Nat: &resolve.Translation{Addrs: []resolve.Address{
			{Kind: resolve.InterfaceAddress, Interface: "wan0"}, address("192.0.2.9/32"),
		}},
	}}}
}

// addresses lists the addresses that a pool hands out to n packets.
func addresses(p *ruleset.Program, n int, src string) []string {
	r := reader{Program: p, turns: map[uint32]uint64{}}
	var given []string
	for range n {
		a := r.evaluate(rulestest.Packet{Direction: ast.Out, Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(src)})
		if a.Nat == nil {
			return append(given, "none")
		}
		given = append(given, a.Nat.Addr.String())
	}
	return given
}

// Refill makes the same pools as compiling again. It writes no row that packets may be
// reading, and reports when there is no room.
func TestRefill(t *testing.T) {
	p, err := ruleset.Compile(natTo(), wan("203.0.113.1/24"))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		host    ruleset.Snapshot
		changes int
		want4   []string
		want6   []string
	}{
		{wan("203.0.113.1/24"), 0, []string{"203.0.113.1", "192.0.2.9", "203.0.113.1"}, []string{"none"}},
		{wan("203.0.113.7/24", "2001:db8::7/64"), 1, []string{"203.0.113.7", "192.0.2.9", "203.0.113.7"}, []string{"2001:db8::7", "2001:db8::7"}},
		{wan("203.0.113.7/24", "2001:db8::7/64"), 0, []string{"203.0.113.7", "192.0.2.9"}, []string{"2001:db8::7"}},
		{wan("203.0.113.8/24", "203.0.113.9/24", "2001:db8::7/64"), 1, []string{"203.0.113.8", "203.0.113.9", "192.0.2.9"}, []string{"2001:db8::7"}},
		{wan(), 1, []string{"192.0.2.9", "192.0.2.9"}, []string{"none"}},
	} {
		before := *p
		inUse := map[uint32]ruleset.Row{}
		for _, run := range []ruleset.Run{p.Pools[0].Rows4, p.Pools[0].Rows6} {
			for i := run.First; i < run.First+run.Count; i++ {
				inUse[i] = p.Rows[i]
			}
		}
		changes, err := p.Refill(step.host)
		if err != nil {
			t.Fatal(err)
		}
		if len(changes) != step.changes {
			t.Errorf("%v: %d changes, want %d", step.host, len(changes), step.changes)
		}
		for i, row := range inUse {
			if p.Rows[i] != row {
				t.Errorf("%v: row %d was in use and has become %v", step.host, i, p.Rows[i])
			}
		}
		if !p.EqualRules(&before) {
			t.Errorf("%v: other rules", step.host)
		}
		if diff := cmp.Diff(step.want4, addresses(p, len(step.want4), "10.0.0.1")); diff != "" {
			t.Errorf("%v: %s", step.host, diff)
		}
		if diff := cmp.Diff(step.want6, addresses(p, len(step.want6), "2001:db8:1::1")); diff != "" {
			t.Errorf("%v: %s", step.host, diff)
		}
	}
	var many []string
	for i := range 20 {
		many = append(many, netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}), 24).String())
	}
	if _, err := p.Refill(wan(many...)); !errors.Is(err, ruleset.ErrPoolFull) {
		t.Errorf("20 addresses: %v, want %v", err, ruleset.ErrPoolFull)
	}
}

// A pool knows the interface that it consists of, even if another device has the name
// now.
func TestPoolOfOneInterface(t *testing.T) {
	interfaceAddress := func(name string, m resolve.Modifier) resolve.Address {
		return resolve.Address{Kind: resolve.InterfaceAddress, Interface: name, Modifier: m}
	}
	host := wan("203.0.113.1/24")
	host.Interfaces[0].Groups = []string{"egress", "both"}
	host.Interfaces = append(host.Interfaces, ruleset.Interface{Name: "lan0", Index: 3, Groups: []string{"both"}})
	for _, test := range []struct {
		of   []resolve.Address
		want uint32
	}{
		{[]resolve.Address{interfaceAddress("wan0", resolve.NoModifier)}, 4},
		{[]resolve.Address{interfaceAddress("wan0", resolve.NoModifier), interfaceAddress("egress", resolve.NoModifier)}, 4},
		{[]resolve.Address{interfaceAddress("both", resolve.NoModifier)}, 0},
		{[]resolve.Address{interfaceAddress("wan0", resolve.NetworkModifier)}, 0},
		{[]resolve.Address{interfaceAddress("wan0", resolve.NoModifier), address("192.0.2.9/32")}, 0},
	} {
		rules := natTo()
		rules.Rules[0].Nat.Addrs = test.of
		p, err := ruleset.Compile(rules, host)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Pools[0].Interface; got != test.want {
			t.Errorf("%v: interface %d, want %d", test.of, got, test.want)
		}
		if test.want == 0 {
			continue
		}
		renewed := wan("203.0.113.1/24")
		renewed.Interfaces[0].Index, renewed.Interfaces[0].Groups = 9, []string{"egress"}
		changes, err := p.Refill(renewed)
		if err != nil || len(changes) != 1 || changes[0].Pool.Interface != 9 {
			t.Errorf("%v: %v, %v, want one change to interface 9", test.of, changes, err)
		}
	}
}

// Translations never use deprecated or link-local addresses.
func TestUnusable(t *testing.T) {
	host := wan("fe80::1/64", "2001:db8::1/64", "2001:db8::2/64")
	host.Interfaces[0].Addresses[1].Deprecated = true
	p, err := ruleset.Compile(natTo(), host)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"2001:db8::2", "2001:db8::2"}
	if diff := cmp.Diff(want, addresses(p, 2, "2001:db8:1::1")); diff != "" {
		t.Error(diff)
	}
}

// Programs are not equal if their rules differ, or if filter rules mean something else on
// another host.
func TestEqualRules(t *testing.T) {
	compile := func(rs *resolve.Ruleset, host ruleset.Snapshot) *ruleset.Program {
		p, err := ruleset.Compile(rs, host)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	one := compile(natTo(), wan("203.0.113.1/24"))
	if other := compile(natTo(), wan("203.0.113.2/24")); !one.EqualRules(other) {
		t.Error("another address in a pool makes other rules")
	}
	filter := natTo()
	filter.Rules[0].To.Addr = resolve.Address{Kind: resolve.InterfaceAddress, Interface: "wan0"}
	if compile(filter, wan("203.0.113.1/24")).EqualRules(compile(filter, wan("203.0.113.2/24"))) {
		t.Error("another address in a condition makes no other rules")
	}
}

// Rules follow interfaces into a VRF, and out of it.
func TestRDomains(t *testing.T) {
	rules, list := resolve.Load("in", []byte("pass on rdomain 10\nblock on ! rdomain 0"), &resolve.Host{})
	if rules == nil {
		t.Fatal(list.Err())
	}
	compiled := func(domain uint32) *ruleset.Program {
		t.Helper()
		p, err := ruleset.Compile(rules, ruleset.Snapshot{Interfaces: []ruleset.Interface{
			{Name: "em0", Index: 2, Groups: []string{ruleset.RDomainGroup(domain)}},
			{Name: "em1", Index: 3, Groups: []string{ruleset.RDomainGroup(0)}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if compiled(10).EqualRules(compiled(0)) || compiled(10).EqualRules(compiled(7)) || !compiled(10).EqualRules(compiled(10)) {
		t.Error("the rules do not follow the interface")
	}
}
