package ruleset

import (
	"fmt"
	"net/netip"

	"weir/pf/resolve"
)

// An Override gives the set of the addresses of a prefix, except those of a longer prefix
// with its own override. It takes precedence over the Index.
type Override struct {
	Prefix netip.Prefix
	Set    uint32
}

// Put adds a prefix to a table as an entry, or changes whether it is a "!" entry. It
// returns the overrides that this needs. changed is false if the entry existed already.
func (t *Tables) Put(table string, e resolve.TableEntry) (overrides []Override, changed bool, err error) {
	c, err := t.change(table, e, false)
	return c.overrides, c.changed, err
}

// Delete removes an entry from a table. changed is false if there was none.
func (t *Tables) Delete(table string, p netip.Prefix) (overrides []Override, changed bool, err error) {
	c, err := t.change(table, resolve.TableEntry{Prefix: p}, true)
	return c.overrides, c.changed, err
}

// A tableChange is the result of changing an entry.
type tableChange struct {
	overrides []Override
	changed   bool
	had, not  bool // there was an entry before; it was a "!" entry
}

// change adds an entry to a table or, with gone, removes it.
func (t *Tables) change(table string, e resolve.TableEntry, gone bool) (c tableChange, err error) {
	number, ok := t.number(table)
	if !ok {
		return c, fmt.Errorf("%s: %w", table, ErrNoTable)
	}
	p := placeIn(number, e)
	in, around := t.families[p.family], uint32(0)
	if gone && in.find(p.first, p.bits) == 0 {
		return c, nil
	}
	at := in.insert(p.first, p.bits, func(n *trieNode) {
		if !t.behind {
			around = t.sets.inside(t.lists, around, n.list)
		}
	})
	before := in.nodes[at].list
	after := t.lists.change(before, number, e.Not, gone)
	if c.not, c.had = t.lists.entry(before, number); after == before {
		return c, nil
	}
	c.changed = true
	t.count(number, before, after)
	in.nodes[at].list = after
	if t.behind {
		return c, nil
	}
	if t.sets.inside(t.lists, around, before) == t.sets.inside(t.lists, around, after) && !in.nodes[at].changed {
		return c, nil // the addresses are in the same tables as before
	}
	c.overrides = t.overrides(nil, int(p.family), at, around, at)
	if t.behind {
		c.overrides = nil
	}
	return c, nil
}

// count updates the number of a table's entries.
func (t *Tables) count(table, before, after uint32) {
	if _, had := t.lists.entry(before, table); had {
		t.entries[table]--
	}
	if _, has := t.lists.entry(after, table); has {
		t.entries[table]++
	}
}

// overrides adds the overrides of a changed prefix and of all prefixes within it, because
// an override hides what the trees say of these. If there are too many, a new index is
// needed.
func (t *Tables) overrides(found []Override, family int, at, around, changed uint32) []Override {
	if at == 0 || t.behind {
		return found
	}
	if len(found) > MaxOverrides {
		t.behind = true
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

// Overridden returns all overrides since the last index.
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
	in.insert(n.first, n.bits, func(outer *trieNode) { set = t.sets.inside(t.lists, set, outer.list) })
	return t.sets.inside(t.lists, set, n.list)
}
