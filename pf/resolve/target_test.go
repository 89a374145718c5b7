package resolve_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/pf/ast"
	"weir/pf/resolve"
)

// TestLowerTargets checks what a ruleset holds of pools, af-to and next hops.
func TestLowerTargets(t *testing.T) {
	addrs := func(list ...string) []resolve.Address {
		var out []resolve.Address
		for _, s := range list {
			out = append(out, prefixAddress(s))
		}
		return out
	}
	hops := func(of string, list ...string) []resolve.NextHop {
		var out []resolve.NextHop
		for _, s := range list {
			out = append(out, resolve.NextHop{Interface: of, Addr: prefixAddress(s)})
		}
		return out
	}
	key := [16]byte{0x57, 0xc6, 0x83, 0x8e, 0xab, 0xf4, 0x01, 0xf7, 0x3f, 0x6d, 0xd5, 0x00, 0x93, 0x40, 0x8e, 0x33}
	tests := []struct {
		rule string
		want []resolve.Rule // compared fields
	}{
		{"match out nat-to 192.0.2.0/28 bitmask", []resolve.Rule{
			{Nat: &resolve.Translation{Addrs: addrs("192.0.2.0/28"), Choice: resolve.Choice{Type: resolve.Bitmask}}}}},
		{"match out inet nat-to { 192.0.2.1 2001:db8::1 192.0.2.2 } source-hash weir sticky-address static-port", []resolve.Rule{
			{Nat: &resolve.Translation{Addrs: addrs("192.0.2.1/32", "192.0.2.2/32"), StaticPort: true,
				Choice: resolve.Choice{Type: resolve.SourceHash, Sticky: true, Key: key}}}}},
		{"match in rdr-to 10.1.1.5 - 10.1.1.16", []resolve.Rule{
			{Rdr: &resolve.Translation{Addrs: addrs("10.1.1.5/32", "10.1.1.6/31", "10.1.1.8/29", "10.1.1.16/32")}}}},
		{"match in rdr-to 0.0.0.0 - 255.255.255.255", []resolve.Rule{{Rdr: &resolve.Translation{Addrs: addrs("0.0.0.0/0")}}}},
		{"match in rdr-to ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe - ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", []resolve.Rule{
			{Rdr: &resolve.Translation{Addrs: addrs("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127")}}}},
		{"match in rdr-to { 10.1.1.5 weight 2 10.1.1.6 }", []resolve.Rule{
			{Rdr: &resolve.Translation{Addrs: addrs("10.1.1.5/32", "10.1.1.5/32", "10.1.1.6/32")}}}},
		{"match in inet6 rdr-to <t>\ntable <t> { 10.1.1.5 2001:db8::5 weight 2 2001:db8::6 weight 4 ! 2001:db8::7 }", []resolve.Rule{
			{Rdr: &resolve.Translation{Addrs: addrs("2001:db8::6/128", "2001:db8::5/128", "2001:db8::6/128")}}}},
		{"match out nat-to <t>\ntable <t> { 10.0.0.0/30 !10.0.0.2 }", []resolve.Rule{
			{Nat: &resolve.Translation{Addrs: addrs("10.0.0.0/31", "10.0.0.3/32")}}}},
		{"match in inet rdr-to <t>\ntable <t> { 10.0.0.8 !10.0.0.8/29 10.0.0.0/28 !10.0.0.1 2001:db8::/64 !2001:db8::/65 }", []resolve.Rule{
			{Rdr: &resolve.Translation{Addrs: addrs("10.0.0.8/32", "10.0.0.0/32", "10.0.0.2/31", "10.0.0.4/30")}}}},
		{"match in inet6 rdr-to <t>\ntable <t> { 10.0.0.8 !10.0.0.0/29 2001:db8::/64 !2001:db8::/65 !2001:db8::/64 }", []resolve.Rule{
			{Rdr: &resolve.Translation{Addrs: addrs("2001:db8::8000:0:0:0/65")}}}},
		{"match in inet rdr-to <t>\ntable <t> { !10.0.0.1 10.0.0.1 weight 2 10.0.0.2 weight 2 10.0.0.3 }", []resolve.Rule{
			{Rdr: &resolve.Translation{Addrs: addrs("10.0.0.2/32", "10.0.0.2/32", "10.0.0.3/32")}}}},
		{"match from 10.0.0.0/24 binat-to 192.0.2.0/24", []resolve.Rule{
			{Nat: &resolve.Translation{Addrs: addrs("192.0.2.0/24"), StaticPort: true, Choice: resolve.Choice{Type: resolve.Bitmask}}},
			{Rdr: &resolve.Translation{Addrs: addrs("10.0.0.0/24"), Choice: resolve.Choice{Type: resolve.Bitmask}}}}},
		{"match from 10.0.0.1 binat-to 192.0.2.1", []resolve.Rule{
			{Nat: &resolve.Translation{Addrs: addrs("192.0.2.1/32"), StaticPort: true}},
			{Rdr: &resolve.Translation{Addrs: addrs("10.0.0.1/32")}}}},
		{"pass in inet6 to 64:ff9b::/96 af-to inet from 192.0.2.1 port 7 to 10.0.0.1 port 80", []resolve.Rule{
			{AfTo: &resolve.AfTo{
				Family: ast.Inet, From: &resolve.Translation{Addrs: addrs("192.0.2.1/32"), PortLow: 7},
				To: &resolve.Translation{Addrs: addrs("10.0.0.1/32"), PortLow: 80}}}}},
		{"pass in inet af-to inet6 from 2001:db8::/96", []resolve.Rule{
			{AfTo: &resolve.AfTo{Family: ast.Inet6, From: &resolve.Translation{Addrs: addrs("2001:db8::/96")}}}}},
		{"pass in route-to 192.0.2.254", []resolve.Rule{
			{Route: &resolve.Route{Kind: resolve.RouteTo, Hops: hops("", "192.0.2.254/32")}}}},
		{"pass out reply-to { 192.0.2.254 192.0.2.253 } random sticky-address", []resolve.Rule{
			{Route: &resolve.Route{Kind: resolve.ReplyTo, Hops: hops("", "192.0.2.254/32", "192.0.2.253/32"),
				Choice: resolve.Choice{Type: resolve.Random, Sticky: true}}}}},
		{"pass in route-to fe80::9%em1", []resolve.Rule{
			{Route: &resolve.Route{Kind: resolve.RouteTo, Hops: hops("em1", "fe80::9/128")}}}},
		{"pass in route-to { fe80::9%em1 fe80::8%em0 }", []resolve.Rule{
			{Route: &resolve.Route{Kind: resolve.RouteTo, Hops: append(hops("em1", "fe80::9/128"), hops("em0", "fe80::8/128")...)}}}},
		{"pass in dup-to (em1 10.1.1.254) inet", []resolve.Rule{
			{Route: &resolve.Route{Kind: resolve.DupTo, Hops: hops("em1", "10.1.1.254/32")}}}},
		{"pass in route-to { (em1 10.1.1.254), (em0 <t>), em2 } inet\ntable <t> { 192.0.2.9 2001:db8::9 }", []resolve.Rule{
			{Route: &resolve.Route{Kind: resolve.RouteTo, Hops: append(append(hops("em1", "10.1.1.254/32"),
				hops("em0", "192.0.2.9/32")...), resolve.NextHop{Interface: "em2"})}}}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			var got []resolve.Rule
			for _, r := range load(t, test.rule+"\n").Rules {
				got = append(got, resolve.Rule{Nat: r.Nat, Rdr: r.Rdr, AfTo: r.AfTo, Route: r.Route})
			}
			same := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
			if diff := cmp.Diff(test.want, got, same, cmpopts.IgnoreUnexported(resolve.Rule{}), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A key that the file does not give is different each time.
func TestRandomKey(t *testing.T) {
	rule := "match out nat-to 192.0.2.0/28 source-hash"
	one, other := load(t, rule).Rules[0].Nat.Choice.Key, load(t, rule).Rules[0].Nat.Choice.Key
	if one == other || one == [16]byte{} {
		t.Errorf("keys %x and %x", one, other)
	}
}
