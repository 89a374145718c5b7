package model

import (
	"net/netip"
	"testing"

	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// TestAddresses tests each kind of address with a packet that comes in from the LAN: of
// each pair the first matches, the second does not.
func TestAddresses(t *testing.T) {
	dynamic := func(of string, m resolve.Modifier, noAlias bool) resolve.Address {
		return resolve.Address{Kind: resolve.InterfaceAddress, Interface: of, Modifier: m, NoAlias: noAlias}
	}
	ranged := resolve.Address{Kind: resolve.RangeAddress, Prefix: prefix("10.0.0.5/32"), Last: addr("10.0.1.7")}
	ranged6 := resolve.Address{Kind: resolve.RangeAddress, Prefix: prefix("::5/128"), Last: addr("::1:0")}
	for _, test := range []struct {
		name    string
		address resolve.Address
		yes, no string
	}{
		{"range from", ranged, "10.0.0.5", "10.0.0.4"},
		{"range to", ranged, "10.0.1.7", "10.0.1.8"},
		{"range of IPv6", ranged6, "::ffff", "::1:1"},
		{"range of the other family", ranged, "10.0.0.255", "::ffff:10.0.0.255"},
		{"no-route", resolve.Address{Kind: resolve.NoRouteAddress}, "198.18.0.1", "198.51.100.7"},
		{"no-route, own", resolve.Address{Kind: resolve.NoRouteAddress}, "198.18.0.1", "203.0.113.5"},
		{"urpf-failed", resolve.Address{Kind: resolve.URPFFailedAddress}, "198.51.100.7", "192.168.1.10"},
		{"urpf-failed without a route", resolve.Address{Kind: resolve.URPFFailedAddress}, "198.18.0.1", "fd00:1::10"},
		{":broadcast", dynamic("wan", resolve.BroadcastModifier, false), "203.0.113.255", "203.0.113.5"},
		{":broadcast:0", dynamic("wan", resolve.BroadcastModifier, true), "203.0.113.255", "203.0.114.255"},
		{":peer", dynamic("wan", resolve.PeerModifier, false), "203.0.113.2", "203.0.113.5"},
		{":peer:0", dynamic("wan", resolve.PeerModifier, true), "203.0.113.1", "203.0.113.2"},
		{"all of it", dynamic("wan", resolve.NoModifier, false), "203.0.114.5", "203.0.114.6"},
	} {
		w := newWorld(t)
		wan := w.box.byIndex(wanIndex)
		wan.Addresses = append(wan.Addresses, prefix("203.0.114.5/24"))
		wan.Peers = []netip.Addr{addr("203.0.113.1"), addr("203.0.113.2")}
		a := &ruleInput{direction: ast.In, iface: w.box.byIndex(lanIndex)}
		if !w.matchesAddress(&test.address, addr(test.yes), a) {
			t.Errorf("%s: %s does not match", test.name, test.yes)
		}
		if w.matchesAddress(&test.address, addr(test.no), a) {
			t.Errorf("%s: %s matches", test.name, test.no)
		}
	}
	w := newWorld(t)
	none := dynamic("lo", resolve.BroadcastModifier, false)
	if w.matchesAddress(&none, addr("127.255.255.255"), &ruleInput{}) {
		t.Error("a loopback has a broadcast address")
	}
}

// TestSender tests rules for users and systems with forwarded packets.
func TestSender(t *testing.T) {
	user := func(op ast.PortOp, low, high uint32) resolve.Rule {
		return resolve.Rule{User: resolve.Owner{Op: op, Low: low, High: high}}
	}
	const syn, ack = 2, 16
	for _, test := range []struct {
		name  string
		rule  resolve.Rule
		flags uint8
		want  bool
	}{
		{"any", resolve.Rule{}, ack, true},
		{"root", user(ast.PortEqual, 0, 0), syn, false},
		{"not root", user(ast.PortNotEqual, 0, 0), syn, true},
		{"unknown", user(ast.PortEqual, resolve.Nobody, 0), syn, true},
		{"not unknown", user(ast.PortNotEqual, resolve.Nobody, 0), syn, false},
		{"greater", user(ast.PortGreater, 1000, 0), syn, false},
		{"at least", user(ast.PortGreaterEqual, 0, 0), syn, false},
		{"outside", user(ast.PortOutside, 1, 2), syn, false},
		{"group", resolve.Rule{Group: resolve.Owner{Op: ast.PortEqual, Low: 5}}, syn, false},
		{"system", resolve.Rule{OS: "Linux"}, syn, false},
		{"unknown system", resolve.Rule{OS: "unknown"}, syn, true},
		{"unknown system, later", resolve.Rule{OS: "unknown"}, ack, true},
	} {
		a := &ruleInput{tuple: state.Tuple{Proto: protoTCP}, tcpFlags: test.flags, owner: nobody, system: unknownSystem}
		m := &Model{rules: &resolve.Ruleset{}}
		if got := m.matchesSender(&test.rule, a); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
