package dataplane

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/state"
)

// A TableCounter is an entry of a table with counters, and what it has counted.
type TableCounter struct {
	Prefix              netip.Prefix
	Not                 bool      // the entry excludes its prefix
	Since               time.Time // when it came into the table
	InBlocked, InPassed Counter
	OutBlocked          Counter
	OutPassed           Counter
}

// TableCounters returns the entries of a table with counters, in order. Packets of states
// that have just been released may be missing for a moment.
func (v *View) TableCounters(name string) ([]TableCounter, error) {
	r, err := v.readTableCounters(ruleset.TableNumber(name))
	if err != nil {
		return nil, err
	}
	if err := r.addStates(v.tables); err != nil {
		return nil, err
	}
	all := make([]TableCounter, 0, len(r.entries))
	for key, n := range r.entries {
		count := func(way int) Counter { return Counter{n.Packets[way], n.Bytes[way]} }
		all = append(all, TableCounter{
			Prefix: key.prefix(), Not: n.Not != 0, Since: time.Unix(0, int64(n.Since)),
			InBlocked: count(0), InPassed: count(tablePass),
			OutBlocked: count(tableOut), OutPassed: count(tableOut | tablePass),
		})
	}
	slices.SortFunc(all, func(a, b TableCounter) int {
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
	return all, nil
}

// countedTable is what is read of one table.
type countedTable struct {
	number  uint32
	entries map[xdpTableEntry]*xdpTableCounter
	lengths [2][]uint32 // Bits of entries, for IPv4 and IPv6, the longest first
}

func (v *View) readTableCounters(number uint32) (*countedTable, error) {
	t := &countedTable{number: number, entries: make(map[xdpTableEntry]*xdpTableCounter)}
	var key xdpTableEntry
	var value xdpTableCounter
	entries := v.tables.maps[mapTableCounters].Iterate()
	for entries.Next(&key, &value) {
		if key.Table>>1 != number {
			continue
		}
		copied := value
		t.entries[key] = &copied
		lengths := &t.lengths[key.Table&1]
		if !slices.Contains(*lengths, key.Bits) {
			*lengths = append(*lengths, key.Bits)
		}
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("read the counters of a table: %w", err)
	}
	for family := range t.lengths {
		slices.SortFunc(t.lengths[family], func(a, b uint32) int { return cmp.Compare(b, a) })
	}
	return t, nil
}

// find returns the counters of the entry that an address is in, as table_counter_find of
// bpf/rules/table_counter.h does. nil: there are none.
func (t *countedTable) find(asked uint32, a netip.Addr) *xdpTableCounter {
	if asked>>1 != t.number {
		return nil
	}
	family, shorter := 0, uint32(96)
	if a.Is6() {
		family, shorter = 1, 0
	}
	for _, bits := range t.lengths[family] {
		prefix, err := a.Prefix(int(bits - shorter))
		if err != nil {
			continue
		}
		if n := t.entries[newTableKey(t.number, prefix)]; n != nil {
			if n.Not != asked&1 {
				return nil
			}
			return n
		}
	}
	return nil
}

// addStates adds what the states have counted that are not released yet.
func (t *countedTable) addStates(of *tables) error {
	if len(t.entries) == 0 {
		return nil
	}
	rules, err := of.tableRules()
	if err != nil || len(rules) == 0 {
		return err
	}
	for i := 1; i < len(of.states); i++ {
		s := &of.states[i]
		switch atomic.LoadUint32(&s.Status) {
		case statusLive, statusDead, statusDying:
		default:
			continue
		}
		if r, ok := rules[s.RuleIn]; ok && state.Flags(s.Flags)&state.EvaluateIn == 0 {
			t.addSide(s, r, tablePass)
		}
		if r, ok := rules[s.RuleOut]; ok && state.Flags(s.Flags)&state.EvaluateOut == 0 {
			t.addSide(s, r, tablePass|tableOut)
		}
	}
	return nil
}

// addSide adds what a state has counted under the rule of one side. way is that of
// direction 0 there.
func (t *countedTable) addSide(s *xdpState, r xdpTableRule, way int) {
	for _, end := range []struct {
		asked            uint32
		came, translated xdpAddr
	}{
		{r.From, s.Forth.Tuple.Src, s.Back.Tuple.Dst},
		{r.To, s.Forth.Tuple.Dst, s.Back.Tuple.Src},
	} {
		n := t.find(end.asked, end.came.addr())
		if n == nil {
			n = t.find(end.asked, end.translated.addr())
		}
		if n == nil {
			continue
		}
		n.Packets[way] += s.FlowForth.Packets
		n.Bytes[way] += s.FlowForth.Bytes
		n.Packets[way^tableOut] += s.FlowBack.Packets
		n.Bytes[way^tableOut] += s.FlowBack.Bytes
	}
}
