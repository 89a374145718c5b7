package rulestest

import (
	"fmt"
	"net/netip"

	"pgregory.net/rapid"

	"weir/internal/fw/ruleset"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// There are few values, so that rules and packets often match.
var (
	ifindices  = []uint32{1, 2, 3, 4, 5, 16383, 1<<31 - 1}
	names      = []string{"lo", "lan0", "lan1", "wan0", "lan", "egress", "gone0"}
	tags       = []string{"", "", "red", "blue"}
	ports      = []uint16{0, 1, 22, 53, 80, 443, 1023, 1024, 50001, 65534, 65535}
	protos     = []uint8{0, 1, 6, 6, 17, 17, 47, 58, 255}
	octets     = []byte{0, 1, 127, 128, 255}
	groups     = []uint16{0, 1, 0x8000, 0xffff}
	icmpTypes  = []uint8{0, 3, 8, 128, 255}
	flagMasks  = []resolve.TCPFlags{{}, {}, {Set: 0x02, Mask: 0x12}, {Set: 0x12, Mask: 0x17}, {Mask: 0xff}, {Set: 0x80, Mask: 0xc0}, {Set: 0x29, Mask: 0x29}}
	tableNames = []string{"mixed", "empty", "many", "undefined"}
)

// oneIn returns true once in n times.
func oneIn(t *rapid.T, n int, label string) bool {
	return rapid.IntRange(1, n).Draw(t, label) == n
}

func pick[T any](t *rapid.T, from []T, label string) T {
	return from[rapid.IntRange(0, len(from)-1).Draw(t, label)]
}

func drawAddr(t *rapid.T, is4 bool, label string) netip.Addr {
	if is4 {
		return netip.AddrFrom4([4]byte{10, pick(t, octets, label), pick(t, octets, label), pick(t, octets, label)})
	}
	b := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	switch rapid.IntRange(0, 9).Draw(t, label) {
	case 0:
		b = [16]byte{}
	case 1:
		for i := range b {
			b[i] = 0xff
		}
	}
	for _, at := range []int{4, 6, 8, 14} {
		g := pick(t, groups, label)
		b[at], b[at+1] = byte(g>>8), byte(g)
	}
	return netip.AddrFrom16(b)
}

func drawPrefix(t *rapid.T, is4 bool, label string) netip.Prefix {
	lengths := []int{0, 1, 32, 48, 62, 63, 64, 65, 112, 127, 128, 128}
	if is4 {
		lengths = []int{0, 1, 8, 9, 16, 23, 24, 31, 32, 32}
	}
	return netip.PrefixFrom(drawAddr(t, is4, label), pick(t, lengths, label)).Masked()
}

// DrawSnapshot draws a host.
func DrawSnapshot(t *rapid.T) ruleset.Snapshot {
	s := ruleset.Snapshot{Interfaces: []ruleset.Interface{
		{Name: "lo", Index: 1},
		{Name: "lan0", Index: 2, Groups: []string{"lan"}},
		{Name: "lan1", Index: 3, Groups: []string{"lan"}},
		{Name: "wan0", Index: 4, Groups: []string{"wan", "egress"}},
	}}
	for i := range s.Interfaces {
		s.Interfaces[i].Addresses = drawAddresses(t)
	}
	return s
}

func drawAddresses(t *rapid.T) []ruleset.Address {
	var addresses []ruleset.Address
	used := map[netip.Addr]bool{} // an interface has each address once
	for range rapid.IntRange(0, 4).Draw(t, "addresses") {
		a := ruleset.Address{Deprecated: oneIn(t, 4, "deprecated")}
		is4 := rapid.Bool().Draw(t, "is4")
		addr := drawAddr(t, is4, "address")
		if !is4 && oneIn(t, 3, "link-local") {
			addr = netip.MustParseAddr("fe80::1")
		}
		a.Prefix = netip.PrefixFrom(addr, pick(t, []int{0, 8, 24, 31, 32}, "length"))
		if oneIn(t, 4, "point to point") {
			a.Peer = drawAddr(t, is4, "peer")
		}
		if used[addr] || used[a.Peer] || addr == a.Peer {
			continue
		}
		used[addr], used[a.Peer] = true, a.Peer.IsValid()
		addresses = append(addresses, a)
	}
	return addresses
}

// persistent tables exist whether or not a rule names them.
var persistent = ast.TableFlags{Persist: true}

// DrawRuleset draws rules, and now and then enough to fill several chunks.
func DrawRuleset(t *rapid.T) *resolve.Ruleset {
	rs := &resolve.Ruleset{Tables: []*resolve.Table{{Name: "empty", TableFlags: persistent}, drawTable(t, "mixed", 12), drawTable(t, "many", 40)}}
	var templates []*resolve.Rule
	for range rapid.IntRange(0, 30).Draw(t, "rules") {
		templates = append(templates, drawRule(t))
	}
	if len(templates) > 0 && oneIn(t, 5, "large") {
		rs.Rules = repeat(t, templates)
	} else {
		rs.Rules = templates
	}
	for i, r := range rs.Rules {
		r.Nr, r.Text = i, fmt.Sprint("rule ", i)
	}
	rs.Translations = DrawTranslations(t)
	rs.First = resolve.FirstRules(nil, drawScrubs(t), rs.Translations)
	return rs
}

// repeat makes many rules from a few. Rules that match no packet separate them, so that
// whole chunks are empty. If there are very many, they translate nothing: all their targets
// would be more than a ruleset may have.
func repeat(t *rapid.T, templates []*resolve.Rule) []*resolve.Rule {
	var rules []*resolve.Rule
	idle, huge := 700, oneIn(t, 20, "huge")
	if huge { // more than a class has bits for
		idle = 9000
	}
	for range rapid.IntRange(1, 8).Draw(t, "runs") {
		r := pick(t, templates, "template")
		n := rapid.IntRange(0, idle).Draw(t, "idle rules")
		for range n {
			idle := copyOf(r)
			idle.Interface = resolve.Interface{Name: "gone0"}
			if huge {
				idle.Nat, idle.Rdr = nil, nil
			}
			rules = append(rules, idle)
		}
		for range rapid.IntRange(0, 12).Draw(t, "busy") {
			rules = append(rules, copyOf(pick(t, templates, "template")))
		}
	}
	return rules
}

// copyOf returns a rule with pools of its own.
func copyOf(r *resolve.Rule) *resolve.Rule {
	c := *r
	for _, t := range []**resolve.Translation{&c.Nat, &c.Rdr} {
		if *t != nil {
			own := **t
			*t = &own
		}
	}
	return &c
}

func drawTable(t *rapid.T, name string, entries int) *resolve.Table {
	table := &resolve.Table{Name: name, TableFlags: persistent}
	for range rapid.IntRange(0, entries).Draw(t, "entries") {
		table.Entries = append(table.Entries, DrawEntry(t))
	}
	return table
}

// drawMark draws from few marks, so that conditions match marks that were set.
func drawMark(t *rapid.T) resolve.Mark {
	mask := pick(t, []uint32{1, 2, 3, ^uint32(resolve.DefaultMarkMask)}, "mask")
	return resolve.Mark{N: uint32(rapid.IntRange(0, 3).Draw(t, "mark")) & mask, Mask: mask}
}

func drawRule(t *rapid.T) *resolve.Rule {
	actions := []ast.Action{ast.Pass, ast.Pass, ast.Block, ast.Match}
	if oneIn(t, 6, "asks nothing") {
		return &resolve.Rule{Action: pick(t, actions[1:], "action"), Interface: resolve.Interface{Any: true}}
	}
	r := &resolve.Rule{
		Action:    pick(t, actions, "action"),
		Direction: pick(t, []ast.Direction{ast.AnyDirection, ast.In, ast.Out}, "direction"),
		Quick:     oneIn(t, 6, "quick"),
		Interface: drawInterface(t),
		Family:    pick(t, []ast.Family{0, 0, 4, 6}, "family"),
		From:      drawEndpoint(t), To: drawEndpoint(t),
		AllowOpts: oneIn(t, 3, "allow-opts"),
		State:     pick(t, []resolve.StatePolicy{resolve.KeepState, resolve.NoState}, "state"),
		Tag:       pick(t, tags, "tag"),
		Flags:     pick(t, flagMasks, "flags"),
	}
	if oneIn(t, 2, "asks proto") {
		r.Proto = pick(t, protos, "proto")
	}
	if oneIn(t, 6, "asks tag") {
		r.Tagged, r.NotTagged = pick(t, tags[2:], "tagged"), rapid.Bool().Draw(t, "not tagged")
	}
	if oneIn(t, 6, "asks mark") {
		r.Marked = resolve.Marked{Mark: drawMark(t), Not: rapid.Bool().Draw(t, "not marked")}
	}
	if r.Action != ast.Block && oneIn(t, 6, "set mark") {
		r.SetMark = drawMark(t)
	}
	if r.Action != ast.Block && oneIn(t, 4, "scrub") {
		r.Scrub = drawScrub(t)
	}
	if (r.Proto == 1 || r.Proto == 58) && rapid.Bool().Draw(t, "asks icmp") {
		r.ICMP = resolve.ICMPType{
			Asked: true, Type: pick(t, icmpTypes, "icmp"),
			HasCode: rapid.Bool().Draw(t, "has code"), Code: uint8(rapid.IntRange(0, 1).Draw(t, "code")),
		}
	}
	if r.Action != ast.Block && r.Direction != ast.AnyDirection && oneIn(t, 3, "nat-to") {
		r.Nat = drawTranslation(t)
		r.Nat.StaticPort = oneIn(t, 3, "static-port")
		r.Nat.EndpointIndependent = oneIn(t, 3, "endpoint-independent")
	}
	if r.Action != ast.Block && r.Direction == ast.In && oneIn(t, 3, "rdr-to") {
		r.Rdr = drawTranslation(t)
	}
	return r
}

func drawScrub(t *rapid.T) resolve.Scrub {
	return resolve.Scrub{
		NoDF: rapid.Bool().Draw(t, "no-df"), RandomID: rapid.Bool().Draw(t, "random-id"),
		MinTTL: pick(t, []uint8{0, 0, 1, 64, 255}, "min-ttl"), MaxMSS: pick(t, []uint16{0, 0, 1, 1440, 65535}, "max-mss"),
		SetTOS: pick(t, []resolve.SetTOS{{}, {}, {Given: true}, {Given: true, N: 0x10}, {Given: true, N: 0xff}}, "set tos"),
	}
}

// drawScrubs draws FreeBSD's list of scrub rules. Two times in three there is none.
func drawScrubs(t *rapid.T) []*resolve.ListRule {
	var list []*resolve.ListRule
	for range rapid.IntRange(-8, 4).Draw(t, "scrub rules") {
		r := &resolve.ListRule{IsScrub: true}
		r.Action, r.State = ast.Match, resolve.NoState
		r.Direction = pick(t, []ast.Direction{ast.AnyDirection, ast.In, ast.Out}, "direction")
		r.Interface, r.Family = drawInterface(t), pick(t, []ast.Family{0, 0, 4, 6}, "family")
		if oneIn(t, 3, "asks ends") {
			r.From, r.To = drawEndpoint(t), drawEndpoint(t)
		}
		if oneIn(t, 4, "asks proto") {
			r.Proto = pick(t, protos, "proto")
		}
		if !oneIn(t, 4, "no scrub") {
			r.Rule.Scrub = drawScrub(t)
		}
		list = append(list, r)
	}
	return list
}

func drawInterface(t *rapid.T) resolve.Interface {
	if rapid.Bool().Draw(t, "any interface") {
		return resolve.Interface{Any: true}
	}
	return resolve.Interface{Name: pick(t, names, "interface"), Not: oneIn(t, 4, "not on")}
}

func drawEndpoint(t *rapid.T) resolve.Endpoint {
	var e resolve.Endpoint
	if rapid.Bool().Draw(t, "asks address") {
		e.Addr = drawAddress(t)
	}
	if oneIn(t, 3, "asks port") {
		ops := []ast.PortOp{
			ast.PortEqual, ast.PortNotEqual, ast.PortLess, ast.PortLessEqual, ast.PortGreater,
			ast.PortGreaterEqual, ast.PortRange, ast.PortInside, ast.PortOutside,
		}
		e.Port = resolve.PortRange{Op: pick(t, ops, "op"), Low: pick(t, ports, "low"), High: pick(t, ports, "high")}
	}
	return e
}

func drawAddress(t *rapid.T) resolve.Address {
	a := resolve.Address{Not: oneIn(t, 4, "not")}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		a.Kind, a.Table = resolve.TableAddress, pick(t, tableNames, "table")
	case 1:
		drawDynamic(t, &a)
	case 2:
		drawRange(t, &a)
	default:
		a.Kind, a.Prefix = resolve.PrefixAddress, drawPrefix(t, rapid.Bool().Draw(t, "is4"), "prefix")
	}
	return a
}

// drawRange draws a range whose ends may be anywhere in two networks.
func drawRange(t *rapid.T, a *resolve.Address) {
	is4 := rapid.Bool().Draw(t, "is4")
	first := drawPrefix(t, is4, "first").Masked().Addr()
	last := drawPrefix(t, is4, "last").Masked().Addr()
	if last.Less(first) {
		first, last = last, first
	}
	a.Kind, a.Prefix, a.Last = resolve.RangeAddress, netip.PrefixFrom(first, first.BitLen()), last
}

func drawDynamic(t *rapid.T, a *resolve.Address) {
	a.Kind, a.Interface = resolve.InterfaceAddress, pick(t, names, "(if)")
	a.NoAlias = oneIn(t, 4, ":0")
	if oneIn(t, 3, "modifier") {
		modifiers := []resolve.Modifier{resolve.NetworkModifier, resolve.BroadcastModifier, resolve.PeerModifier}
		a.Modifier = pick(t, modifiers, "which")
	} else if oneIn(t, 4, "has bits") {
		a.Bits = pick(t, []int{8, 24, 31, 64, 128}, "bits")
	}
}

func drawTranslation(t *rapid.T) *resolve.Translation {
	tr := &resolve.Translation{}
	for range rapid.IntRange(1, 3).Draw(t, "targets") {
		var a resolve.Address
		if oneIn(t, 3, "dynamic") {
			drawDynamic(t, &a)
		} else {
			a.Kind, a.Prefix = resolve.PrefixAddress, drawPrefix(t, rapid.Bool().Draw(t, "is4"), "target")
		}
		tr.Addrs = append(tr.Addrs, a)
	}
	if oneIn(t, 2, "chooses") {
		tr.Choice.Type = pick(t, []resolve.PoolType{resolve.RoundRobin, resolve.Bitmask, resolve.Random, resolve.SourceHash, resolve.LeastStates}, "pool")
		tr.Choice.Sticky = oneIn(t, 3, "sticky")
		if tr.Choice.Type == resolve.LeastStates {
			tr.Choice.Counts = 1
		}
		tr.Choice.Key[rapid.IntRange(0, 15).Draw(t, "key")] = 1
	}
	if rapid.Bool().Draw(t, "has port") {
		tr.PortLow = pick(t, ports[1:], "port")
		if rapid.Bool().Draw(t, "has range") {
			tr.PortHigh = max(tr.PortLow, pick(t, ports, "high port"))
		}
	}
	return tr
}

// DrawPacket draws a packet.
func DrawPacket(t *rapid.T) Packet {
	is4 := rapid.Bool().Draw(t, "is4")
	return Packet{
		Direction: pick(t, []ast.Direction{ast.In, ast.Out}, "direction"),
		Ifindex:   pick(t, ifindices, "ifindex"),
		Src:       drawAddr(t, is4, "src"), Dst: drawAddr(t, is4, "dst"),
		Proto: pick(t, protos, "proto"),
		SPort: pick(t, ports, "sport"), DPort: pick(t, ports, "dport"),
		TCPFlags: uint8(rapid.IntRange(0, 255).Draw(t, "flags")),
		ICMPType: pick(t, icmpTypes, "type"), ICMPCode: uint8(rapid.IntRange(0, 1).Draw(t, "code")),
		Tag: pick(t, tags, "tag"), Mark: uint32(rapid.IntRange(0, 3).Draw(t, "mark")), Keep: uint32(rapid.IntRange(0, 3).Draw(t, "keep")),
	}
}

// DrawEntry draws an entry of a table.
func DrawEntry(t *rapid.T) resolve.TableEntry {
	is4 := rapid.Bool().Draw(t, "is4")
	return resolve.TableEntry{Prefix: drawPrefix(t, is4, "entry"), Not: oneIn(t, 3, "not")}
}
