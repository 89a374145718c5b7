package model

import (
	"testing"

	"github.com/gopacket/gopacket/layers"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

func TestLastMatchWins(t *testing.T) {
	w := newWorld(t, block(), pass())
	w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Redirect, reason.Rule)
	if s := w.only(); s.RuleIn != 2 || s.RuleOut != 2 || s.Flags != state.In|state.Out {
		t.Errorf("state %+v", s)
	}
	w = newWorld(t, pass(), block())
	w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Drop, reason.Block)
	quick := pass()
	quick.Quick = true
	w = newWorld(t, quick, block())
	w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Redirect, reason.Rule)
}

func TestNoRule(t *testing.T) {
	w := newWorld(t)
	out := w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Redirect, reason.NoRule)
	if len(w.States()) != 0 || out[14+8] != 63 || string(out[:6]) != nextMAC {
		t.Errorf("states %v, frame % x", w.States(), out[:34])
	}
	w.in(lanIndex, udp(t, client, 4000, gateway, 53, "q"), Up, reason.Local)
	w.in(lanIndex, udp(t, client, 4000, addr("203.0.113.255"), 53, "q"), Up, reason.Local)
	w.in(lanIndex, udp(t, client, 4000, addr("198.18.0.1"), 53, "q"), Up, reason.Local)
	w.in(lanIndex, udp(t, client, 4000, addr("224.0.0.251"), 53, "q"), Up, reason.UpMulticast)
	w.in(lanIndex, udp(t, client, 4000, addr("250.0.0.1"), 53, "q"), Drop, reason.MartianDest)
}

func TestSkip(t *testing.T) {
	w := newWorld(t, block())
	w.rules.Options.Skip = []string{"lan"}
	w.in(lanIndex, udp(t, client, 4000, gateway, 53, "q"), Up, reason.Local)
	w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Drop, reason.Block)
	w.rules.Options.Skip = []string{"lan", "egress"}
	w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Redirect, reason.Skip)
	if len(w.States()) != 0 {
		t.Error("a skipped crossing kept state")
	}
}

// Each rule passes only packets that meet its condition.
func TestConditions(t *testing.T) {
	yes := udp(t, client, 4000, server, 53, "q")
	for name, c := range map[string]struct {
		rule resolve.Rule
		no   []byte
	}{
		"direction and interface": {resolve.Rule{Direction: ast.Out, Interface: resolve.Interface{Name: "wan"}},
			udp(t, client, 4000, inside, 53, "q")},
		"group":    {resolve.Rule{Interface: resolve.Interface{Name: "egress", Group: true}}, udp(t, client, 4000, inside, 53, "q")},
		"family":   {resolve.Rule{Family: ast.Inet}, udp(t, client6, 4000, server6, 53, "q")},
		"protocol": {resolve.Rule{Proto: protoUDP}, echo(t, client, server, 8, 1)},
		"source":   {resolve.Rule{From: resolve.Endpoint{Addr: host("192.168.1.0/28")}}, udp(t, inside, 4000, server, 53, "q")},
		"not": {resolve.Rule{To: resolve.Endpoint{Addr: resolve.Address{Kind: resolve.PrefixAddress, Prefix: prefix("9.0.0.0/8"), Not: true}}},
			udp(t, client, 4000, addr("9.9.9.9"), 53, "q")},
		"port": {resolve.Rule{To: resolve.Endpoint{Port: resolve.PortRange{Op: ast.PortEqual, Low: 53}}},
			udp(t, client, 4000, server, 54, "q")},
		"port of a protocol without": {resolve.Rule{To: resolve.Endpoint{Port: resolve.PortRange{Op: ast.PortNotEqual, Low: 1}}},
			frame(t, ip(client, server, layers.IPProtocolGRE))},
		"icmp type": {resolve.Rule{ICMP: resolve.ICMPType{}, Proto: protoUDP}, echo(t, client, server, 8, 1)},
		"table":     {resolve.Rule{To: resolve.Endpoint{Addr: resolve.Address{Kind: resolve.TableAddress, Table: "good"}}}, udp(t, client, 4000, addr("198.51.100.200"), 53, "q")},
		"dynamic": {resolve.Rule{From: resolve.Endpoint{Addr: resolve.Address{Kind: resolve.InterfaceAddress, Interface: "lan", Modifier: resolve.NetworkModifier}}},
			udp(t, addr("192.168.2.10"), 4000, server, 53, "q")},
	} {
		rule := c.rule
		w := newWorld(t, block(), &rule)
		w.rules.Tables = []*resolve.Table{{Name: "good", Entries: []resolve.TableEntry{
			{Prefix: prefix("198.51.100.0/24")}, {Prefix: prefix("198.51.100.128/25"), Not: true}, {Prefix: prefix("0.0.0.0/0"), Not: true},
		}}}
		if rule.Direction == ast.Out || rule.Interface.Group {
			w.rules.Rules = append(w.rules.Rules, &resolve.Rule{Direction: ast.In, Interface: resolve.Interface{Any: true}})
		}
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.in(lanIndex, yes, Redirect, reason.Rule)
			w.in(lanIndex, c.no, Drop, reason.Block)
		})
	}
}

func TestICMPTypeAndCode(t *testing.T) {
	rule := &resolve.Rule{Proto: protoICMP, Family: ast.Inet, ICMP: resolve.ICMPType{Asked: true, Type: 8, HasCode: true}}
	w := newWorld(t, block(), rule)
	w.in(lanIndex, echo(t, client, server, 8, 7), Redirect, reason.Rule)
	w.phase(state.ICMPFirst)
	w.in(wanIndex, echo(t, server, client, 0, 7), Redirect, reason.State)
	w.phase(state.ICMPError)
	w.in(lanIndex, echo(t, client, server, 13, 7), Drop, reason.Block)
}

// A match rule's translation applies to later rules, and its tag to both crossings.
func TestMatchIsSticky(t *testing.T) {
	rdr := rdrTo("203.0.113.5", "192.168.1.20", 8080)
	rdr.Tag = "FORWARD"
	in := pass()
	in.Direction, in.To.Addr, in.To.Port = ast.In, host("192.168.1.20"), resolve.PortRange{Op: ast.PortEqual, Low: 8080}
	out := pass()
	out.Direction, out.Tagged = ast.Out, "FORWARD"
	w := newWorld(t, block(), rdr, in, out)
	b := w.in(wanIndex, udp(t, server, 4000, gateway, 80, "q"), Redirect, reason.Rule)
	w.ends(b, server, 4000, inside, 8080)
	if s := w.only(); s.Flags&state.NAT == 0 || s.RuleIn != 3 || s.RuleOut != 4 {
		t.Errorf("state %+v", s)
	}
	b = w.in(lanIndex, udp(t, inside, 8080, server, 4000, "a"), Redirect, reason.State)
	w.ends(b, gateway, 80, server, 4000)
	w.in(wanIndex, udp(t, server, 4000, inside, 8080, "untranslated"), Drop, reason.Block)
}

// A pass rule's translation applies if the rule decides, and overrides those of match
// rules.
func TestPassTranslation(t *testing.T) {
	decides := pass()
	decides.Direction = ast.Out
	decides.Nat = &resolve.Translation{Addrs: pool("203.0.113.9")}
	w := newWorld(t, pass(), decides, natTo("203.0.113.8"))
	b := w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Redirect, reason.Rule)
	w.ends(b, addr("203.0.113.9"), 50001, server, 53)
	w = newWorld(t, decides, natTo("203.0.113.8"), pass())
	b = w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Redirect, reason.Rule)
	w.ends(b, addr("203.0.113.8"), 50001, server, 53)
}

// If one side keeps no state, its rules see every packet.
func TestEvaluatedAgain(t *testing.T) {
	noState := pass()
	noState.Direction, noState.State, noState.Interface.Name = ast.In, resolve.NoState, "lan"
	back := pass()
	back.Direction, back.State, back.Interface.Name = ast.Out, resolve.NoState, "lan"
	keep := pass()
	keep.Direction, keep.Interface.Name = ast.Out, "wan"
	w := newWorld(t, block(), noState, keep, back)
	w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Redirect, reason.Rule)
	if s := w.only(); s.Flags != state.In|state.Out|state.EvaluateIn {
		t.Fatalf("flags %x", s.Flags)
	}
	w.in(wanIndex, udp(t, server, 53, client, 4000, "a"), Redirect, reason.State)
	w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Redirect, reason.State)
	back.Action, noState.Action = ast.Block, ast.Block
	w.in(wanIndex, udp(t, server, 53, client, 4000, "a"), Drop, reason.Block)
	w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Drop, reason.Block)
}

func TestOwnPackets(t *testing.T) {
	w := newWorld(t, block(), &resolve.Rule{Direction: ast.Out, Interface: resolve.Interface{Name: "wan"}})
	w.own(wanIndex, udp(t, gateway, 4000, server, 53, "q"), Out, reason.Rule)
	if s := w.only(); s.Flags != state.Out {
		t.Fatalf("flags %x", s.Flags)
	}
	w.in(wanIndex, udp(t, server, 53, gateway, 4000, "a"), Up, reason.Local)
	w.own(lanIndex, udp(t, addr("192.168.1.1"), 4000, client, 53, "q"), Drop, reason.Block)
	w.handle(&Frame{Hook: TCXEgress, Interface: wanIndex, From: lanIndex, Bytes: udp(t, client, 4000, server, 53, "q")}, Drop, reason.Guard)
}

func TestImplicit(t *testing.T) {
	w := newWorld(t, block())
	offer := udp(t, addr("203.0.113.1"), 67, gateway, 68, "offer")
	w.in(wanIndex, offer, Up, reason.Implicit)
	w.own(wanIndex, udp(t, addr("0.0.0.0"), 68, limited, 67, "discover"), Out, reason.Implicit)
	w.in(lanIndex, udp(t, client, 67, addr("192.168.1.1"), 68, "offer"), Drop, reason.Block) // lan's address is static
	igmp := frame(t, &layers.IPv4{Version: 4, TTL: 1, SrcIP: client.AsSlice(), DstIP: addr("224.0.0.1").AsSlice(), Protocol: layers.IPProtocolIGMP})
	w.in(lanIndex, igmp, Up, reason.Implicit)
	w.rules.Options.ImplicitPass = false
	w.in(wanIndex, offer, Drop, reason.Block)
	w.in(lanIndex, igmp, Drop, reason.Block)
}

func TestNeighbourDiscovery(t *testing.T) {
	w := newWorld(t, block())
	solicit := func(hops uint8) []byte {
		l := ip(addr("fe80::10"), addr("ff02::1:ff00:1"), layers.IPProtocolICMPv6).(*layers.IPv6)
		l.HopLimit = hops
		return frame(t, l, &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(135, 0)},
			&layers.ICMPv6NeighborSolicitation{TargetAddress: addr("fe80::1").AsSlice()})
	}
	w.in(lanIndex, solicit(255), Up, reason.Implicit)
	w.in(lanIndex, solicit(64), Drop, reason.Block)
}
