package dataplane

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
)

// MaxTableCounters is how many entries all tables with counters can have
// (bpf/rules/table_counter.h).
const MaxTableCounters = 1 << 20

// Indices of the counts of an entry: bits of bpf/rules/table_counter.h.
const (
	tablePass = 1
	tableOut  = 2
)

// newTableKey returns the key of an entry in the map of counters.
func newTableKey(table uint32, p netip.Prefix) xdpTableEntry {
	key := xdpTableEntry{Bits: uint32(p.Bits()), Table: table<<1 | 1, Addr: rawAddr(p.Masked().Addr())}
	if p.Addr().Is4() {
		key.Bits, key.Table = key.Bits+96, table<<1
	}
	return key
}

// prefix returns the entry's prefix.
func (key *xdpTableEntry) prefix() netip.Prefix {
	bits := int(key.Bits)
	if key.Table&1 == 0 {
		bits -= 96
	}
	return netip.PrefixFrom(key.Addr.addr(), bits)
}

// fitsCounters refuses a program whose tables with counters have too many entries. more is
// how many entries a change may add.
func fitsCounters(p *ruleset.Program, more int) error {
	for _, name := range p.CountedTables() {
		more += p.TableLen(name)
	}
	if more > MaxTableCounters {
		return fmt.Errorf("%d entries of tables with counters, more than %d: %w", more, MaxTableCounters, ruleset.ErrTablesFull)
	}
	return nil
}

// countTables gives the entries of a program's tables counters, and the programs the rules
// that count. What entries have counted stays. The program need not be in force.
func (d *Dataplane) countTables(p *ruleset.Program) error {
	for _, name := range p.CountedTables() {
		number := ruleset.TableNumber(name)
		var failed error
		err := p.TableEntries(name, func(e ruleset.TableEntry) bool {
			failed = d.tables.countEntry(number, e)
			return failed == nil
		})
		if err := errors.Join(err, failed); err != nil {
			return err
		}
	}
	rules := d.tables.maps[mapTableRules]
	for index := range p.Rules {
		r := &p.Rules[index]
		if r.Flags&ruleset.Counts == 0 {
			continue
		}
		raw := xdpTableRule{From: uint32(r.From), To: uint32(r.To)}
		if err := rules.Put(d.config.RuleBase+uint32(index)+1, &raw); err != nil {
			return fmt.Errorf("let a rule count for tables: %w", err)
		}
		atomic.AddUint32(&d.tables.shared.TableRules, 1) // pruneTableCounters makes it exact
	}
	return nil
}

// countEntry gives an entry counters, unless it has some.
func (t *tables) countEntry(table uint32, e ruleset.TableEntry) error {
	m, key := t.maps[mapTableCounters], newTableKey(table, e.Prefix)
	var found xdpTableCounter
	err := m.Lookup(&key, &found)
	if err == nil && found.Not == uint32(asByte(e.Not)) {
		return nil
	}
	if err == nil || errors.Is(err, bpfload.ErrNoKey) {
		err = m.Put(&key, &xdpTableCounter{Since: uint64(time.Now().UnixNano()), Not: uint32(asByte(e.Not))})
	}
	if err == nil {
		err = t.addLength(&key)
	}
	if err != nil {
		return fmt.Errorf("give the entry %s counters: %w", e.Prefix, err)
	}
	return nil
}

// addLength says that a table has a prefix of this length. A length that no prefix has any
// more costs only time.
func (t *tables) addLength(key *xdpTableEntry) error {
	m := t.maps[mapTableLengths]
	var lengths xdpTableLengths
	if err := m.Lookup(key.Table, &lengths); err != nil && !errors.Is(err, bpfload.ErrNoKey) {
		return err
	}
	known := lengths.Bits[:lengths.Count]
	at, found := slices.BinarySearchFunc(known, uint8(key.Bits), func(a, b uint8) int { return cmp.Compare(b, a) })
	if found {
		return nil
	}
	copy(lengths.Bits[:], slices.Insert(slices.Clone(known), at, uint8(key.Bits)))
	lengths.Count++
	return m.Put(key.Table, &lengths)
}

// changeCounters follows a change of a table that is in force.
func (d *Dataplane) changeCounters(name string, put []ruleset.TableEntry, removed []netip.Prefix) error {
	if !d.counts(name) {
		return nil
	}
	number, m := ruleset.TableNumber(name), d.tables.maps[mapTableCounters]
	for _, p := range removed {
		key := newTableKey(number, p.Masked())
		if err := m.Delete(&key); err != nil && !errors.Is(err, bpfload.ErrNoKey) {
			return fmt.Errorf("remove the counters of the entry %s: %w", p, err)
		}
	}
	for _, e := range put {
		if err := d.tables.countEntry(number, ruleset.TableEntry{Prefix: e.Prefix.Masked(), Not: e.Not}); err != nil {
			return err
		}
	}
	return nil
}

// pruneTableCounters removes the counters of entries that are gone, and the rules that no
// state can hold any more.
func (d *Dataplane) pruneTableCounters() error {
	p := d.live.program
	wanted := make(map[xdpTableEntry]bool)
	for _, name := range p.CountedTables() {
		number := ruleset.TableNumber(name)
		if err := p.TableEntries(name, func(e ruleset.TableEntry) bool {
			wanted[newTableKey(number, e.Prefix)] = true
			return true
		}); err != nil {
			return err
		}
	}
	var gone []xdpTableEntry
	for key, err := range d.tables.tableCounters() {
		if err != nil {
			return err
		}
		if !wanted[key] {
			gone = append(gone, key)
		}
	}
	for i := range gone {
		if err := d.tables.maps[mapTableCounters].Delete(&gone[i]); err != nil {
			return fmt.Errorf("remove the counters of an entry: %w", err)
		}
	}
	return d.pruneTableRules(p)
}

func (d *Dataplane) pruneTableRules(p *ruleset.Program) error {
	rules, err := d.tables.tableRules()
	if err != nil {
		return err
	}
	used := make(map[uint32]bool, len(rules))
	for i := range d.tables.states {
		if len(rules) == 0 {
			break
		}
		if s := &d.tables.states[i]; atomic.LoadUint32(&s.Status) != statusFree {
			used[s.RuleIn], used[s.RuleOut] = true, true
		}
	}
	for id := range rules {
		index := id - 1 - d.config.RuleBase
		counts := index < uint32(len(p.Rules)) && p.Rules[index].Flags&ruleset.Counts != 0
		if counts || used[id] {
			continue
		}
		if err := d.tables.maps[mapTableRules].Delete(id); err != nil {
			return fmt.Errorf("remove a rule that counted for tables: %w", err)
		}
		delete(rules, id)
	}
	atomic.StoreUint32(&d.tables.shared.TableRules, uint32(len(rules)))
	return nil
}

// tableRules reads the tables that rules count for, by global id + 1.
func (t *tables) tableRules() (map[uint32]xdpTableRule, error) {
	all := make(map[uint32]xdpTableRule)
	var id uint32
	var rule xdpTableRule
	entries := t.maps[mapTableRules].Iterate()
	for entries.Next(&id, &rule) {
		all[id] = rule
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("read the rules that count for tables: %w", err)
	}
	return all, nil
}

// tableCounters yields the keys of all counters.
func (t *tables) tableCounters() iter.Seq2[xdpTableEntry, error] {
	return func(yield func(xdpTableEntry, error) bool) {
		var key xdpTableEntry
		var value xdpTableCounter
		entries := t.maps[mapTableCounters].Iterate()
		for entries.Next(&key, &value) {
			if !yield(key, nil) {
				return
			}
		}
		if err := entries.Err(); err != nil {
			yield(key, fmt.Errorf("list the counters of tables: %w", err))
		}
	}
}
