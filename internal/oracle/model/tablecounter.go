package model

import (
	"net/netip"

	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// A TableEntry is an entry of a table with counters.
type TableEntry struct {
	Table  string
	Prefix netip.Prefix
}

// A TableCounter has the counts of one entry: of packets that came in and were blocked,
// came in and passed, left and were blocked, left and passed.
type TableCounter [4]Counter

// Tables returns the counters of the entries of tables with counters. Entries without
// packets have none.
func (m *Model) Tables() map[TableEntry]TableCounter { return m.tables }

// countEvaluated counts a packet under the tables that the deciding rule of a crossing
// names. If the rule keeps state, the packet counts in its state.
func (m *Model) countEvaluated(r *resolve.Rule, a *ruleInput, seen state.Tuple) {
	passes := r.Action != ast.Block
	if !passes || r.State != resolve.KeepState {
		m.countTables(r, [2]state.Tuple{a.packet, seen}, a.direction == ast.Out, passes, a.length)
	}
}

// countInState counts a packet of a connection, on both sides.
func (m *Model) countInState(p *packet, c *connection, d int) {
	for side, number := range []uint32{c.RuleIn, c.RuleOut} {
		evaluates := c.Flags&[]state.Flags{state.EvaluateIn, state.EvaluateOut}[side] != 0
		if number == 0 || evaluates {
			continue
		}
		m.countTables(m.rule(number), [2]state.Tuple{c.Tuple[0], c.Tuple[1].Reverse()}, side != d, true, p.length())
	}
}

// countTables counts a packet under the entries that its addresses are in. The second
// tuple has its addresses as translated.
func (m *Model) countTables(r *resolve.Rule, tuples [2]state.Tuple, out, passes bool, bytes int) {
	way := 0
	if out {
		way = 2
	}
	if passes {
		way++
	}
	for _, end := range []struct {
		asked *resolve.Address
		addrs [2]netip.Addr
	}{
		{&r.From.Addr, [2]netip.Addr{tuples[0].Src, tuples[1].Src}},
		{&r.To.Addr, [2]netip.Addr{tuples[0].Dst, tuples[1].Dst}},
	} {
		if end.asked.Kind != resolve.TableAddress {
			continue
		}
		for _, addr := range end.addrs {
			e, counts := m.countedEntry(end.asked, addr)
			if !counts {
				continue
			}
			n := m.tables[e]
			n[way].Packets++
			n[way].Bytes += uint64(bytes)
			m.tables[e] = n
			break
		}
	}
}

// countedEntry returns the entry that an address is in: the longest prefix of a table with
// counters. It must exclude its prefix if the rule asks for addresses that are not in the
// table.
func (m *Model) countedEntry(asked *resolve.Address, addr netip.Addr) (found TableEntry, counts bool) {
	longest := -1
	for _, t := range m.rules.Tables {
		if t.Name != asked.Table || !t.Counters {
			continue
		}
		for _, e := range t.Entries {
			if e.Prefix.Contains(addr) && e.Prefix.Bits() > longest {
				longest, counts = e.Prefix.Bits(), e.Not == asked.Not
				found = TableEntry{t.Name, e.Prefix.Masked()}
			}
		}
	}
	return found, counts
}
