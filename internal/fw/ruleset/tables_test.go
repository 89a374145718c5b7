package ruleset_test

import (
	"cmp"
	"errors"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/ruleset/rulestest"
	"weir/pf/resolve"
)

// longest looks an address up in a table's entries one by one.
func longest(entries []resolve.TableEntry, a netip.Addr) bool {
	bits, in := -1, false
	for _, e := range entries {
		if e.Prefix.Contains(a) && e.Prefix.Bits() > bits {
			bits, in = e.Prefix.Bits(), !e.Not
		}
	}
	return in
}

// A lookup finds sets as the programs do: overrides first, then the trees.
type lookup struct {
	index     *ruleset.TableIndex
	overrides map[netip.Prefix]uint32
}

func (l *lookup) rebuild(t *rapid.T, tables *ruleset.Tables) {
	index, err := tables.MakeIndex()
	if err != nil {
		t.Fatal(err)
	}
	l.index = index
	l.overrides = map[netip.Prefix]uint32{}
}

func (l *lookup) set(a netip.Addr) uint32 {
	for bits := a.BitLen(); bits >= 0; bits-- {
		if set, ok := l.overrides[netip.PrefixFrom(a, bits).Masked()]; ok {
			return set
		}
	}
	return findSet(l.index, a)
}

// For every address, the trees and overrides agree with the entries, after any changes.
func TestTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		held := map[string][]resolve.TableEntry{}
		var all []*resolve.Table
		for _, name := range []string{"a", "b", "c", "empty"} {
			table := &resolve.Table{Name: name}
			for range rapid.IntRange(0, 12).Draw(t, "entries") {
				e := rulestest.DrawEntry(t)
				if name == "empty" || slices.ContainsFunc(held[name], func(h resolve.TableEntry) bool { return h.Prefix == e.Prefix }) {
					continue
				}
				held[name] = append(held[name], e)
			}
			table.Entries = held[name]
			all = append(all, table)
		}
		tables := ruleset.NewTables(all)
		var l lookup
		l.rebuild(t, tables)
		for range rapid.IntRange(0, 30).Draw(t, "changes") {
			changeTables(t, tables, held, &l)
			compareTables(t, tables, held, &l)
		}
		compareTables(t, tables, held, &l)
	})
}

// changeTables makes the same change in all of them.
func changeTables(t *rapid.T, tables *ruleset.Tables, held map[string][]resolve.TableEntry, l *lookup) {
	name := rapid.SampledFrom([]string{"a", "b", "c", "empty"}).Draw(t, "table")
	e := rulestest.DrawEntry(t)
	same := func(h resolve.TableEntry) bool { return h.Prefix == e.Prefix }
	if len(held[name]) > 0 && rapid.Bool().Draw(t, "known") {
		e.Prefix = rapid.SampledFrom(held[name]).Draw(t, "entry").Prefix
	}
	at := slices.IndexFunc(held[name], same)
	var overrides []ruleset.Override
	var changed, want bool
	var err error
	switch {
	case rapid.IntRange(0, 9).Draw(t, "rebuild") == 0:
		l.rebuild(t, tables)
		return
	case rapid.Bool().Draw(t, "delete"):
		overrides, changed, err = tables.Delete(name, e.Prefix)
		want = at >= 0
		held[name] = slices.DeleteFunc(slices.Clone(held[name]), same)
	case at >= 0:
		overrides, changed, err = tables.Put(name, e)
		want = held[name][at].Not != e.Not
		held[name] = slices.Clone(held[name])
		held[name][at] = e
	default:
		overrides, changed, err = tables.Put(name, e)
		want = true
		held[name] = append(slices.Clone(held[name]), e)
	}
	if err != nil || changed != want {
		t.Fatalf("change of %v in %s: %t, %v, want %t", e, name, changed, err, want)
	}
	for _, o := range overrides {
		l.overrides[o.Prefix] = o.Set
	}
	left := map[netip.Prefix]uint32{}
	for _, o := range tables.Overridden() {
		left[o.Prefix] = o.Set
	}
	if !maps.Equal(left, l.overrides) {
		t.Fatalf("overridden: %v, told one by one: %v", left, l.overrides)
	}
}

// compareTables compares the tables' contents with the look-up results.
func compareTables(t *rapid.T, tables *ruleset.Tables, held map[string][]resolve.TableEntry, l *lookup) {
	for name, want := range held {
		var got []resolve.TableEntry
		if err := tables.Entries(name, func(e resolve.TableEntry) bool { got = append(got, e); return true }); err != nil {
			t.Fatal(err)
		}
		want = slices.SortedFunc(slices.Values(want), func(a, b resolve.TableEntry) int {
			return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), a.Prefix.Bits()-b.Prefix.Bits())
		})
		if n, err := tables.Len(name); err != nil || n != len(want) || !slices.Equal(got, want) {
			t.Fatalf("%s holds %v (%d, %v), want %v", name, got, n, err, want)
		}
	}
	for range 5 {
		a := rulestest.DrawPacket(t).Src
		set := tables.Set(a)
		if found := l.set(a); found != set {
			t.Fatalf("%s: set %d is found, want %d", a, found, set)
		}
		for name, entries := range held {
			if got, want := tables.Holds(name, a), longest(entries, a); got != want {
				t.Fatalf("%s in %s: %t, want %t", a, name, got, want)
			}
		}
	}
}

// million returns a million host prefixes, scattered over all addresses.
func million() []*resolve.Table {
	table := &resolve.Table{Name: "bad"}
	for i := range uint32(1_000_000) {
		n := i * 2654435761
		addr := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		table.Entries = append(table.Entries, resolve.TableEntry{Prefix: netip.PrefixFrom(addr, 32)})
	}
	return []*resolve.Table{table}
}

// The cost of a million entries: adding them, making their trees, and changing one of
// them.
func BenchmarkTables(b *testing.B) {
	all := million()
	var tables *ruleset.Tables
	b.Run("fill", func(b *testing.B) {
		for b.Loop() {
			tables = ruleset.NewTables(all)
		}
	})
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			if _, err := tables.MakeIndex(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("change", func(b *testing.B) {
		begin := time.Now()
		changes := 0
		for b.Loop() {
			e := all[0].Entries[changes*7919%len(all[0].Entries)]
			e.Not = changes/len(all[0].Entries)%2 == 0
			if _, _, err := tables.Put("bad", e); err != nil {
				b.Fatal(err)
			}
			changes++
		}
		b.ReportMetric(float64(changes)/time.Since(begin).Seconds(), "changes/s")
	})
}

// If several entries have the same prefix, the first counts. A table that does not exist
// is an error.
func TestTablesEdges(t *testing.T) {
	host := netip.MustParseAddr("192.0.2.1")
	p := netip.PrefixFrom(host, 32)
	tables := ruleset.NewTables([]*resolve.Table{{Name: "t", Entries: []resolve.TableEntry{
		{Prefix: p}, {Prefix: p, Not: true}, {Prefix: netip.MustParsePrefix("255.255.255.255/32")},
		{Prefix: netip.MustParsePrefix("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128")},
	}}})
	if n, err := tables.Len("t"); n != 3 || err != nil || !tables.Holds("t", host) {
		t.Errorf("%d entries (%v), %s in it: %t; want 3, true", n, err, host, tables.Holds("t", host))
	}
	if tables.Holds("u", host) {
		t.Error("an address is in a table that does not exist")
	}
	index, err := tables.MakeIndex()
	if err != nil {
		t.Fatal(err)
	}
	l := lookup{index: index}
	for text, want := range map[string]uint32{
		"192.0.2.0": 0, "192.0.2.1": 1, "192.0.2.2": 0, "255.255.255.254": 0, "255.255.255.255": 1, "0.0.0.0": 0,
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe": 0, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff": 1, "::c000:201": 0,
	} {
		if got := l.set(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: set %d, want %d", text, got, want)
		}
	}
	_, _, put := tables.Put("u", resolve.TableEntry{Prefix: p})
	_, _, del := tables.Delete("u", p)
	_, length := tables.Len("u")
	each := tables.Entries("u", func(resolve.TableEntry) bool { return true })
	for _, err := range []error{put, del, length, each} {
		if !errors.Is(err, ruleset.ErrNoTable) {
			t.Errorf("got %v, want that there is no such table", err)
		}
	}
}

// Adding and deleting entries again and again does not use more and more memory.
func TestTablesForget(t *testing.T) {
	tables := ruleset.NewTables([]*resolve.Table{{Name: "t", Entries: []resolve.TableEntry{
		{Prefix: netip.MustParsePrefix("10.0.0.0/8")},
	}}})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, e := range million()[0].Entries {
		for _, err := range []error{second(tables.Put("t", e)), second(tables.Delete("t", e.Prefix))} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := tables.MakeIndex(); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("a million entries put in and taken out leave %d bytes", grown)
	}
	if host := netip.MustParseAddr("10.1.2.3"); !tables.Holds("t", host) || len(tables.Overridden()) != 0 {
		t.Errorf("%s in the table: %t, overrides: %d; want true, none", host, tables.Holds("t", host), len(tables.Overridden()))
	}
}

func second(_ []ruleset.Override, _ bool, err error) error { return err }
