package ruleset

import (
	"fmt"
	"net/netip"

	"weir/pf/resolve"
)

// Trees of an Index.
const (
	tableTree4 = iota
	tableTree6
	tableFirstLow
)

// An Override says of which set the addresses of a prefix are, but for those of a
// longer prefix with an override of its own. It counts before the Index.
type Override struct {
	Prefix netip.Prefix
	Set    uint32
}

// Index makes the search trees of all tables: tableTree4 and tableTree6 lead from
// an address to its set. It takes in all changes, so no override is left.
func (t *Tables) Index() (*Forest, error) {
	f := &Forest{Trees: make([]Tree, tableFirstLow)}
	small := t.stretches(0)
	for i := range small {
		small[i].from = number{lo: small[i].from.hi >> 32}
	}
	f.Trees[tableTree4] = f.addSmall(small)
	f.Trees[tableTree6] = f.addLarge(t.stretches(1))
	if len(f.Nodes) > maxTableNodes || len(t.sets.all) > maxSets {
		return nil, fmt.Errorf("%d nodes of trees and %d sets of tables: %w", len(f.Nodes), len(t.sets.all), ErrTablesFull)
	}
	for family, in := range t.families {
		for _, at := range t.changes[family] {
			in.nodes[at].changed = false
		}
		t.changes[family] = t.changes[family][:0]
		t.families[family] = in.tidied()
	}
	return f, nil
}

// A walkTables goes over a trie in the order of addresses.
type walkTables struct {
	*Tables
	in    *trie
	found []stretch
}

func (t *Tables) stretches(family int) []stretch {
	w := walkTables{Tables: t, in: t.families[family]}
	w.found = make([]stretch, 1, len(w.in.nodes)+2)
	w.under(w.in.root, 0)
	return w.found
}

// under adds the stretches of a node's prefix; around is the set outside of it.
func (w *walkTables) under(at, around uint32) {
	if at == 0 {
		return
	}
	n := &w.in.nodes[at]
	set := w.sets.inside(w.lists, around, n.list)
	if set != around {
		w.begin(n.first, set)
	}
	w.under(n.child[0], set)
	w.under(n.child[1], set)
	if set == around {
		return
	}
	if next, ok := n.behind(); ok {
		w.begin(next, around)
	}
}

// begin says that from an address on the set is another one.
func (w *walkTables) begin(at number, set uint32) {
	end := &w.found[len(w.found)-1]
	if end.from == at {
		end.class = set
		if n := len(w.found); n > 1 && w.found[n-2].class == set {
			w.found = w.found[:n-1]
		}
		return
	}
	if end.class != set {
		w.found = append(w.found, stretch{at, set})
	}
}

// behind returns the first address behind the node's prefix; ok is false if its
// family has none.
func (n *trieNode) behind() (number, bool) {
	last := n.first
	if n.bits < 64 {
		last.hi |= ^uint64(0) >> n.bits
		last.lo = ^uint64(0)
	} else {
		last.lo |= ^uint64(0) >> (n.bits - 64)
	}
	return last.next()
}

// Put makes a prefix an entry of a table, or changes whether it is a "!" one, and
// returns what has to be overridden for that. changed is false if the entry was
// there already.
func (t *Tables) Put(table string, e resolve.TableEntry) (overrides []Override, changed bool, err error) {
	return t.change(table, e, func(list, number uint32) uint32 { return t.lists.with(list, number, e.Not) })
}

// Delete takes an entry out of a table. changed is false if there was none.
func (t *Tables) Delete(table string, p netip.Prefix) (overrides []Override, changed bool, err error) {
	e := resolve.TableEntry{Prefix: p}
	if at := placeIn(0, e); t.families[at.family].find(at.first, at.bits) == 0 {
		_, err := t.Len(table)
		return nil, false, err
	}
	return t.change(table, e, t.lists.without)
}

func (t *Tables) change(table string, e resolve.TableEntry, edit func(list, number uint32) uint32) ([]Override, bool, error) {
	number, ok := t.number(table)
	if !ok {
		return nil, false, fmt.Errorf("%s: %w", table, ErrNoTable)
	}
	p := placeIn(number, e)
	in, around := t.families[p.family], uint32(0)
	at := in.put(p.first, p.bits, func(n *trieNode) { around = t.sets.inside(t.lists, around, n.list) })
	before := in.nodes[at].list
	after := edit(before, number)
	if after == before {
		return nil, false, nil
	}
	t.count(number, before, after)
	in.nodes[at].list = after
	if t.sets.inside(t.lists, around, before) == t.sets.inside(t.lists, around, after) && !in.nodes[at].changed {
		return nil, true, nil // the addresses are in the same tables as before
	}
	return t.overrides(nil, int(p.family), at, around, at), true, nil
}

// count keeps the number of a table's entries.
func (t *Tables) count(table, before, after uint32) {
	if _, had := t.lists.entry(before, table); had {
		t.entries[table]--
	}
	if _, has := t.lists.entry(after, table); has {
		t.entries[table]++
	}
}

// overrides adds those of a changed prefix, and of all prefixes within: an
// override hides what the trees say of these.
func (t *Tables) overrides(found []Override, family int, at, around, changed uint32) []Override {
	if at == 0 {
		return found
	}
	n := &t.families[family].nodes[at]
	set := t.sets.inside(t.lists, around, n.list)
	if at == changed || n.list != 0 || n.changed {
		found = append(found, Override{n.prefix(family), set})
		if !n.changed {
			n.changed = true
			t.changes[family] = append(t.changes[family], at)
		}
	}
	found = t.overrides(found, family, n.child[0], set, changed)
	return t.overrides(found, family, n.child[1], set, changed)
}

// Overridden returns all overrides since the last Index.
func (t *Tables) Overridden() []Override {
	var all []Override
	for family, in := range t.families {
		for _, at := range t.changes[family] {
			p := in.nodes[at].prefix(family)
			all = append(all, Override{p, t.setOf(family, at)})
		}
	}
	return all
}

// setOf returns the set of a node's prefix.
func (t *Tables) setOf(family int, node uint32) uint32 {
	in, set := t.families[family], uint32(0)
	n := in.nodes[node]
	in.put(n.first, n.bits, func(outer *trieNode) { set = t.sets.inside(t.lists, set, outer.list) })
	return t.sets.inside(t.lists, set, n.list)
}
