package model

import (
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"weir/internal/fw/reason"
	"weir/pf/ast"
	"weir/pf/resolve"
)

func lan() resolve.Interface { return resolve.Interface{Name: "lan"} }

// Each rule passes packets that meet all its conditions, and no others.
func TestFilterConditions(t *testing.T) {
	low := gopacket.SerializableLayer(&layers.IPv4{
		Version: 4, TTL: 64, TOS: 0x10, Protocol: layers.IPProtocolGRE, SrcIP: client.AsSlice(), DstIP: server.AsSlice(),
	})
	low6 := gopacket.SerializableLayer(&layers.IPv6{
		Version: 6, HopLimit: 64, TrafficClass: 0x13, NextHeader: layers.IPProtocolGRE, SrcIP: client6.AsSlice(), DstIP: server6.AsSlice(),
	})
	zero := uint32(0)
	one := uint32(1)
	for name, c := range map[string]struct {
		filter   resolve.Filter
		on       *resolve.Interface
		bytes    []byte
		received uint32
		passes   bool
	}{
		"received":              {filter: resolve.Filter{ReceivedOn: resolve.ReceivedOn{Asked: true, On: lan()}}, received: lanIndex, passes: true},
		"received elsewhere":    {filter: resolve.Filter{ReceivedOn: resolve.ReceivedOn{Asked: true, On: lan()}}, received: wanIndex},
		"not received":          {filter: resolve.Filter{ReceivedOn: resolve.ReceivedOn{Asked: true, On: lan(), Not: true}}, received: lanIndex},
		"own is received by no": {filter: resolve.Filter{ReceivedOn: resolve.ReceivedOn{Asked: true, On: resolve.Interface{Name: "lo", Not: true}}}},
		"own is not received":   {filter: resolve.Filter{ReceivedOn: resolve.ReceivedOn{Asked: true, On: lan(), Not: true}}, passes: true},
		"tos":                   {filter: resolve.Filter{TOS: 0x10}, bytes: frame(t, low), received: lanIndex, passes: true},
		"tos of IPv6":           {filter: resolve.Filter{TOS: 0x10}, bytes: frame(t, low6), received: lanIndex, passes: true},
		"other tos":             {filter: resolve.Filter{TOS: 0x11}, bytes: frame(t, low), received: lanIndex},
		"dscp":                  {filter: resolve.Filter{DSCP: resolve.DSCP{Asked: true, N: 4}}, bytes: frame(t, low), received: lanIndex, passes: true},
		"dscp of IPv6":          {filter: resolve.Filter{DSCP: resolve.DSCP{Asked: true, N: 4}}, bytes: frame(t, low6), received: lanIndex, passes: true},
		"other dscp":            {filter: resolve.Filter{DSCP: resolve.DSCP{Asked: true}}, bytes: frame(t, low), received: lanIndex},
		"dscp 0":                {filter: resolve.Filter{DSCP: resolve.DSCP{Asked: true}}, received: lanIndex, passes: true},
		"size":                  {filter: resolve.Filter{MaxPktSize: 29}, received: lanIndex, passes: true},
		"too large":             {filter: resolve.Filter{MaxPktSize: 28}, received: lanIndex},
		"prio":                  {filter: resolve.Filter{Prio: resolve.Prio{Asked: true, N: 3}}, received: lanIndex, passes: true},
		"other prio":            {filter: resolve.Filter{Prio: resolve.Prio{Asked: true}}, received: lanIndex},
		"fragment":              {filter: resolve.Filter{Fragment: true}, received: lanIndex},
		"rdomain":               {on: &resolve.Interface{RDomain: &zero}, received: lanIndex, passes: true},
		"other rdomain":         {on: &resolve.Interface{RDomain: &one}, received: lanIndex},
		"not the other rdomain": {on: &resolve.Interface{RDomain: &one, Not: true}, received: lanIndex, passes: true},
	} {
		t.Run(name, func(t *testing.T) {
			rule := pass()
			rule.Interface, rule.Filter = resolve.Interface{Any: true}, c.filter
			if c.on != nil {
				rule.Interface = *c.on
			}
			f := Frame{Interface: c.received, Bytes: c.bytes}
			if f.Bytes == nil {
				f.Bytes = udp(t, client, 4000, server, 53, "q")
			}
			if c.received == 0 {
				f.Bytes = udp(t, gateway, 4000, server, 53, "q")[14:]
			}
			if got := ask1(t, f, block(), rule); got.Pass != c.passes {
				t.Errorf("%+v", got)
			}
		})
	}
}

// If chance decides, each result is returned.
func TestTraceAllChances(t *testing.T) {
	half, third := block(), block()
	half.Probability, third.Probability = 1<<31, 1<<30
	half.Direction, third.Direction = ast.In, ast.Out
	w := newWorld(t, pass(), half, third)
	all := w.TraceAll(&Frame{Interface: lanIndex, Bytes: udp(t, client, 4000, server, 53, "q")})
	var passes int
	for i := range all {
		if all[i].Pass {
			passes++
		}
	}
	if len(all) != 3 || passes != 1 { // blocked on the way in, on the way out, or not
		t.Errorf("%d results, %d of them pass", len(all), passes)
	}
	w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Drop, reason.Block)
	var many []*resolve.Rule
	for range 40 {
		many = append(many, half)
	}
	if all := newWorld(t, many...).TraceAll(&Frame{Interface: lanIndex, Bytes: udp(t, client, 4000, server, 53, "q")}); len(all) != 1<<mostChances {
		t.Errorf("%d results", len(all))
	}
}

// A diverted packet ends at the box, whatever its route.
func TestDivert(t *testing.T) {
	rule := pass()
	rule.Direction = ast.In
	rule.Divert = resolve.Divert{Kind: resolve.DivertTo, Addr: addr("127.0.0.1"), Port: 8025}
	if got := ask1(t, Frame{Interface: lanIndex, Bytes: udp(t, client, 4000, server, 53, "q")}, rule); !got.Pass || !got.Local {
		t.Errorf("%+v", got)
	}
}
