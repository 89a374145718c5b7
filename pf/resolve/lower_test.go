package resolve_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/pf/ast"
	"weir/pf/resolve"
)

// load resolves a configuration that must be accepted.
func load(t *testing.T, src string) *resolve.Ruleset {
	t.Helper()
	rules, list := resolve.Load("in", []byte(src), testHost(t))
	if rules == nil {
		t.Fatal(list.Err())
	}
	return rules
}

var (
	anyInterface = resolve.Interface{Any: true}
	prefix       = netip.MustParsePrefix
)

func prefixAddress(s string) resolve.Address {
	return resolve.Address{Kind: resolve.PrefixAddress, Prefix: prefix(s)}
}

// TestLower checks each field of a compiled rule.
func TestLower(t *testing.T) {
	synOfSynAck := resolve.TCPFlags{Set: 2, Mask: 18}
	tests := []struct {
		rule string
		want resolve.Rule
	}{
		{"pass", resolve.Rule{Interface: anyInterface, Flags: synOfSynAck}},
		{"pass proto udp no state", resolve.Rule{Interface: anyInterface, Proto: 17, State: resolve.NoState}},
		{"pass proto tcp flags any", resolve.Rule{Interface: anyInterface, Proto: 6}},
		{"block in quick on ! em0 inet", resolve.Rule{
			Action: ast.Block, Direction: ast.In, Quick: true, Family: ast.Inet,
			Interface: resolve.Interface{Name: "em0", Not: true}, State: resolve.NoState,
		}},
		{"block on inside", resolve.Rule{Action: ast.Block, Interface: resolve.Interface{Name: "inside", Group: true}, State: resolve.NoState}},
		{"block on egress", resolve.Rule{Action: ast.Block, Interface: resolve.Interface{Name: "egress", Group: true}, State: resolve.NoState}},
		{"block on em", resolve.Rule{Action: ast.Block, Interface: resolve.Interface{Name: "em", Group: true}, State: resolve.NoState}},
		{"block on wg", resolve.Rule{Action: ast.Block, Interface: resolve.Interface{Name: "wg", Group: true}, State: resolve.NoState}},
		{"block on wg0", resolve.Rule{Action: ast.Block, Interface: resolve.Interface{Name: "wg0"}, State: resolve.NoState}},
		{"match proto udp from ! 10.0.0.0/8 port 1:5 to <t> port > 7", resolve.Rule{
			Action: ast.Match, Interface: anyInterface, Family: ast.Inet, Proto: 17, State: resolve.NoState,
			From: resolve.Endpoint{
				Addr: resolve.Address{Kind: resolve.PrefixAddress, Not: true, Prefix: prefix("10.0.0.0/8")},
				Port: resolve.PortRange{Op: ast.PortRange, Low: 1, High: 5},
			},
			To: resolve.Endpoint{
				Addr: resolve.Address{Kind: resolve.TableAddress, Table: "t"},
				Port: resolve.PortRange{Op: ast.PortGreater, Low: 7},
			},
		}},
		{"block from (em0:network:0) to ! (em1)", resolve.Rule{
			Action: ast.Block, Interface: anyInterface, State: resolve.NoState,
			From: resolve.Endpoint{Addr: resolve.Address{
				Kind: resolve.InterfaceAddress, Interface: "em0", Modifier: resolve.NetworkModifier, NoAlias: true,
			}},
			To: resolve.Endpoint{Addr: resolve.Address{Kind: resolve.InterfaceAddress, Not: true, Interface: "em1"}},
		}},
		{"block inet from (em0)/24 to 0.0.0.0/0", resolve.Rule{
			Action: ast.Block, Interface: anyInterface, Family: ast.Inet, State: resolve.NoState,
			From: resolve.Endpoint{Addr: resolve.Address{Kind: resolve.InterfaceAddress, Interface: "em0", Bits: 24}},
		}},
		{"block from ! 0.0.0.0/0", resolve.Rule{
			Action: ast.Block, Interface: anyInterface, Family: ast.Inet, State: resolve.NoState,
			From: resolve.Endpoint{Addr: resolve.Address{Kind: resolve.PrefixAddress, Not: true, Prefix: prefix("0.0.0.0/0")}},
		}},
		{"pass inet proto icmp icmp-type unreach code needfrag allow-opts", resolve.Rule{
			Interface: anyInterface, Family: ast.Inet, Proto: 1, AllowOpts: true,
			ICMP: resolve.ICMPType{Asked: true, Type: 3, HasCode: true, Code: 4},
		}},
		{"pass inet6 proto icmp6 icmp6-type echoreq", resolve.Rule{
			Interface: anyInterface, Family: ast.Inet6, Proto: 58, ICMP: resolve.ICMPType{Asked: true, Type: 128},
		}},
		{"pass out on ! any received-on any tos 0x10 max-pkt-size 100 probability 50% once", resolve.Rule{
			Direction: ast.Out, Interface: resolve.Interface{Name: "lo", Group: true},
			Flags: resolve.TCPFlags{Set: 2, Mask: 18},
			Filter: resolve.Filter{
				ReceivedOn: resolve.ReceivedOn{Asked: true, On: resolve.Interface{Name: "lo", Not: true, Group: true}},
				TOS:        16, MaxPktSize: 100, Probability: 1 << 31, Once: true,
			},
		}},
		{"block on rdomain 0 ! received-on em0 prio 0 fragment", resolve.Rule{
			Action: ast.Block, Interface: resolve.Interface{RDomain: new(uint32)}, State: resolve.NoState,
			Filter: resolve.Filter{
				ReceivedOn: resolve.ReceivedOn{Asked: true, On: resolve.Interface{Name: "em0"}, Not: true},
				Prio:       resolve.Prio{Asked: true}, Fragment: true,
			},
		}},
		{"pass in proto udp divert-to localhost port domain rtable 0", resolve.Rule{
			Direction: ast.In, Interface: anyInterface, Family: ast.Inet, Proto: 17,
			Filter: resolve.Filter{
				Divert: resolve.Divert{Kind: resolve.DivertTo, Addr: netip.MustParseAddr("127.0.0.1"), Port: 53}, RTable: new(uint32),
			},
		}},
		{"pass out divert-to 8000", resolve.Rule{
			Direction: ast.Out, Interface: anyInterface, Flags: resolve.TCPFlags{Set: 2, Mask: 18},
			Filter: resolve.Filter{Divert: resolve.Divert{Kind: resolve.DivertPacket, Port: 8000}},
		}},
		{`block label "l $if" tag a ! tagged b`, resolve.Rule{
			Action: ast.Block, Interface: anyInterface, State: resolve.NoState,
			Label: "l any", Tag: "a", Tagged: "b", NotTagged: true,
		}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			rules := load(t, "table <t> { 10.0.0.1 }\n"+test.rule)
			if len(rules.Rules) != 1 {
				t.Fatalf("%d rules", len(rules.Rules))
			}
			ignored := cmpopts.IgnoreFields(resolve.Rule{}, "Origin", "Stmt", "Pos", "Text")
			if diff := cmp.Diff(&test.want, rules.Rules[0], ignored, cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLowerTranslations checks what nat-to and rdr-to are compiled from.
func TestLowerTranslations(t *testing.T) {
	dynamic := resolve.Address{Kind: resolve.InterfaceAddress, Interface: "em0"}
	tests := []struct {
		rule     string
		nat, rdr *resolve.Translation
	}{
		{"match out on em0 nat-to (em0)", &resolve.Translation{Addrs: []resolve.Address{dynamic}}, nil},
		{"match out on em0 inet nat-to em0 static-port",
			&resolve.Translation{Addrs: []resolve.Address{prefixAddress("192.0.2.1/32")}, StaticPort: true}, nil},
		{"match out on em0 nat-to 192.0.2.0/28 port 2000:1000",
			&resolve.Translation{Addrs: []resolve.Address{prefixAddress("192.0.2.0/28")}, PortLow: 1000, PortHigh: 2000}, nil},
		{"match out on em0 nat-to 192.0.2.1 port 50001:65535",
			&resolve.Translation{Addrs: []resolve.Address{prefixAddress("192.0.2.1/32")}}, nil},
		{"match out on em0 nat-to 192.0.2.1 port 53",
			&resolve.Translation{Addrs: []resolve.Address{prefixAddress("192.0.2.1/32")}, PortLow: 53}, nil},
		{"match out on em0 nat-to { 192.0.2.1 192.0.2.2 }",
			&resolve.Translation{Addrs: []resolve.Address{prefixAddress("192.0.2.1/32"), prefixAddress("192.0.2.2/32")}}, nil},
		{"match out on em0 inet nat-to <pool>",
			&resolve.Translation{Addrs: []resolve.Address{
				prefixAddress("192.0.2.9/32"), prefixAddress("192.0.2.16/32"), prefixAddress("192.0.2.18/31"),
				prefixAddress("192.0.2.20/30"), prefixAddress("192.0.2.24/29"),
			}}, nil},
		{"match out on em0 inet6 nat-to <pool>",
			&resolve.Translation{Addrs: []resolve.Address{prefixAddress("2001:db8::9/128")}}, nil},
		{"match in proto tcp to port 8000:8010 rdr-to 10.1.1.5 port 9000:*", nil,
			&resolve.Translation{Addrs: []resolve.Address{prefixAddress("10.1.1.5/32")}, PortLow: 9000, PortHigh: 9010}},
		{"match in proto tcp to port 80 rdr-to 10.1.1.5 port 8080", nil,
			&resolve.Translation{Addrs: []resolve.Address{prefixAddress("10.1.1.5/32")}, PortLow: 8080}},
		{"match in proto tcp rdr-to <nothing>", nil, &resolve.Translation{}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			rules := load(t, "table <pool> { 192.0.2.9 !192.0.2.17 192.0.2.16/28 2001:db8::9 }\n"+test.rule)
			got := rules.Rules[0]
			equal := cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})
			if diff := cmp.Diff(test.nat, got.Nat, equal); diff != "" {
				t.Errorf("nat (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.rdr, got.Rdr, equal); diff != "" {
				t.Errorf("rdr (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrigin checks that a rule from a list knows the element that made it, also through
// a macro, and that rules are numbered.
func TestOrigin(t *testing.T) {
	rules := load(t, "ports = \"{ ssh, www }\"\nblock\npass in proto tcp from { 10.0.0.1, 10.0.0.2 }\npass out proto tcp to port $ports\n")
	var got []string
	for i, r := range rules.Rules {
		if r.Nr != i {
			t.Errorf("rule %d has the number %d", i, r.Nr)
		}
		got = append(got, rules.Source.Files.Position(r.Pos).String())
	}
	want := []string{"in:2:1", "in:3:26", "in:3:36", "in:4:28", "in:4:28"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTables checks the entries of tables, and what is known of their definitions.
func TestTables(t *testing.T) {
	rules := load(t, "table <a> { 10/8, ! 10.1/16, em1, 2001:db8::/32 }\ntable <b>\n"+
		"table <c> const counters { }\ntable <d> persist\npass from <d>\n")
	want := []*resolve.Table{
		{Name: "a", Entries: []resolve.TableEntry{
			{Prefix: prefix("10.0.0.0/8")}, {Prefix: prefix("10.1.0.0/16"), Not: true},
			{Prefix: prefix("10.1.1.1/32")}, {Prefix: prefix("10.1.1.2/32")}, {Prefix: prefix("2001:db8::/32")},
		}, Given: true},
		{Name: "b"},
		{Name: "c", Given: true, TableFlags: ast.TableFlags{Const: true, Counters: true}},
		{Name: "d", Used: true, TableFlags: ast.TableFlags{Persist: true}},
	}
	if diff := cmp.Diff(want, rules.Tables, cmpopts.IgnoreFields(resolve.Table{}, "Pos"), cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOptions checks defaults, and the adaptive timeouts that follow from the limit of
// states.
func TestOptions(t *testing.T) {
	type options struct {
		states, start, end uint32
		implicit           bool
		skip               string
	}
	for _, test := range []struct {
		src  string
		want options
	}{
		{"", options{100_000, 60_000, 120_000, true, ""}},
		{"set limit states 10", options{10, 6, 12, true, ""}},
		{"set limit states 67108863", options{67108863, 40265317, 80530635, true, ""}},
		{"set timeout adaptive.start 70000", options{100_000, 70_000, 120_000, true, ""}},
		{"set timeout { adaptive.start 0, adaptive.end 0 }", options{100_000, 0, 0, true, ""}},
		{"set implicit-pass no\nset skip on { lo wg0 }\nset skip on tun0", options{100_000, 60_000, 120_000, false, "lo wg0 tun0"}},
	} {
		o := load(t, test.src).Options
		got := options{o.MaxStates, o.Timeouts.AdaptiveStart, o.Timeouts.AdaptiveEnd, o.ImplicitPass, strings.Join(o.Skip, " ")}
		if got != test.want {
			t.Errorf("%q: %+v, want %+v", test.src, got, test.want)
		}
	}
}

// TestTimeouts sets each timeout by its name and finds it in its field.
func TestTimeouts(t *testing.T) {
	src := `set timeout { tcp.first 1, tcp.opening 2, tcp.established 3, tcp.closing 4, tcp.finwait 5, tcp.closed 6,
		udp.first 7, udp.single 8, udp.multiple 9, icmp.first 10, icmp.error 11, other.first 12, other.single 13,
		other.multiple 14, frag 15, interval 16, src.track 17, tcp.tsdiff 18, adaptive.start 19, adaptive.end 20 }`
	want := resolve.Timeouts{
		TCPFirst: 1, TCPOpening: 2, TCPEstablished: 3, TCPClosing: 4, TCPFinWait: 5, TCPClosed: 6,
		UDPFirst: 7, UDPSingle: 8, UDPMultiple: 9, ICMPFirst: 10, ICMPError: 11, OtherFirst: 12, OtherSingle: 13,
		OtherMultiple: 14, Frag: 15, Interval: 16, SrcTrack: 17, TCPTSDiff: 18, AdaptiveStart: 19, AdaptiveEnd: 20,
	}
	if got := load(t, src).Options.Timeouts; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	defaults := resolve.Timeouts{
		TCPFirst: 120, TCPOpening: 30, TCPEstablished: 86400, TCPClosing: 900, TCPFinWait: 45, TCPClosed: 90,
		UDPFirst: 60, UDPSingle: 30, UDPMultiple: 60, ICMPFirst: 20, ICMPError: 10, OtherFirst: 60, OtherSingle: 30,
		OtherMultiple: 60, Frag: 60, Interval: 10, TCPTSDiff: 30, AdaptiveStart: 60_000, AdaptiveEnd: 120_000,
	}
	if got := load(t, "").Options.Timeouts; got != defaults {
		t.Errorf("defaults: %+v, want %+v", got, defaults)
	}
}

// TestPortRange checks Match against each operator's definition in pf.conf(5).
func TestPortRange(t *testing.T) {
	for op, match := range map[ast.PortOp]func(p uint16) bool{
		ast.AnyPort:          func(uint16) bool { return true },
		ast.PortEqual:        func(p uint16) bool { return p == 10 },
		ast.PortNotEqual:     func(p uint16) bool { return p != 10 },
		ast.PortLess:         func(p uint16) bool { return p < 10 },
		ast.PortLessEqual:    func(p uint16) bool { return p <= 10 },
		ast.PortGreater:      func(p uint16) bool { return p > 10 },
		ast.PortGreaterEqual: func(p uint16) bool { return p >= 10 },
		ast.PortRange:        func(p uint16) bool { return p >= 10 && p <= 20 },
		ast.PortInside:       func(p uint16) bool { return p > 10 && p < 20 },
		ast.PortOutside:      func(p uint16) bool { return p < 10 || p > 20 },
	} {
		r := resolve.PortRange{Op: op, Low: 10, High: 20}
		for _, p := range []uint16{0, 9, 10, 11, 19, 20, 21, 65535} {
			if got := r.Match(p); got != match(p) {
				t.Errorf("%+v.Match(%d) = %v", r, p, got)
			}
		}
	}
}

// TestSelfWithoutAddresses checks that a rule about a machine without addresses matches
// nothing, not everything.
func TestSelfWithoutAddresses(t *testing.T) {
	rules, list := resolve.Load("in", []byte("block\npass in proto tcp to self port 22\npass from { self, 10.0.0.1 }\n"), nil)
	if rules == nil {
		t.Fatal(list.Err())
	}
	var got []string
	for _, r := range rules.Rules {
		got = append(got, r.Text)
	}
	if diff := cmp.Diff([]string{"block drop all", "pass inet from 10.0.0.1 to any flags S/SA"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(list.Items) != 2 {
		t.Errorf("%d warnings, want 2", len(list.Items))
	}
}
