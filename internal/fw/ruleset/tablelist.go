package ruleset

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"weir/pf/resolve"
)

// A TableInfo describes a table.
type TableInfo struct {
	Name     string
	Entries  int
	Const    bool
	Persist  bool
	Counters bool
	Made     bool   // at run time: no file defines it
	Rules    int    // that name it
	Anchors  int    // that have such rules, or a table of their own of this name
	Anchor   string // that defines it, or alone names it, if that is not part of Name
}

// TableName returns the name by which the program knows a table that users call
// name@anchor. A table of an anchor that no other place names is called name alone, also if
// no file defines it.
func (p *Program) TableName(name string) string {
	if _, err := p.tables.find(name); err == nil {
		return name
	}
	base, anchor, _ := strings.Cut(name, "@")
	if _, err := p.tables.find(base); err == nil && anchor != "" && p.tables.anchors[base] == anchor {
		return base
	}
	return name
}

// Tables returns the tables, by name, without those that stand for lists of addresses.
func (p *Program) Tables() []TableInfo {
	var all []TableInfo
	for _, in := range p.tables.parts() {
		for number := range in.names {
			all = append(all, p.tables.info(in, number))
		}
	}
	slices.SortFunc(all, func(a, b TableInfo) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// TableInfo describes one table. The error wraps ErrNoTable.
func (p *Program) TableInfo(name string) (TableInfo, error) {
	in, err := p.tables.find(name)
	if err != nil {
		return TableInfo{}, err
	}
	number, _ := in.number(name)
	return p.tables.info(in, int(number)), nil
}

func (t *liveTables) info(in *Tables, number int) TableInfo {
	name := in.names[number]
	return TableInfo{
		Name: name, Entries: in.entries[number], Const: t.constant[name],
		Persist: t.persist[name] || t.made[name], Counters: t.counted[name],
		Made: t.made[name], Rules: t.uses[name], Anchors: t.within[name], Anchor: t.anchors[name],
	}
}

// parts returns all Tables: those that conditions of rules use come first.
func (t *liveTables) parts() []*Tables {
	parts := []*Tables{t.named, t.idle}
	for _, name := range slices.Sorted(maps.Keys(t.alone)) {
		parts = append(parts, t.alone[name])
	}
	return parts
}

// MakeTable makes a table that no file defines, unless it was made before. As in pf, it
// stays until it is removed, also if no rule names it; a load keeps its contents. A table
// that exists only because rules name it stays from now on, too. made is false if the table
// is defined and exists, or was made before.
func (p *Program) MakeTable(name string) (made bool) {
	t := &p.tables
	_, err := t.find(name)
	if _, defined := t.given[name]; t.made[name] || err == nil && defined {
		return false
	}
	if err != nil {
		// If it is defined, it is not persistent, and no rule names it.
		t.alone[name], t.fixed[name], t.constant[name] = NewTables([]*resolve.Table{{Name: name}}), false, false
	}
	t.made[name], t.changed[name] = true, true
	return true
}

// KeepMade makes a table as an earlier program had it: anchor is that of its TableInfo.
func (p *Program) KeepMade(name, anchor string) {
	if p.MakeTable(name) && p.tables.anchors[name] == "" {
		p.tables.anchors[name] = anchor
	}
}

// MadeTables returns the names of the tables that were made at run time.
func (p *Program) MadeTables() []string { return slices.Sorted(maps.Keys(p.tables.made)) }

// Made reports whether a table was made at run time.
func (p *Program) Made(name string) bool { return p.tables.made[name] }

// RemoveTable removes a table that was made at run time and that no rule names. It returns
// false for others.
func (p *Program) RemoveTable(name string) bool {
	t := &p.tables
	if t.alone[name] == nil {
		return false
	}
	delete(t.alone, name)
	delete(t.made, name)
	delete(t.changed, name)
	return true
}

// Changeable returns ErrNoTable or ErrConstTable (wrapped) for a table that commands cannot
// change. Packets may add to a const table that rules name with overload.
func (p *Program) Changeable(name string) error {
	_, err := p.tables.changeable(name)
	if err == nil && p.tables.constant[name] {
		err = fmt.Errorf("%s: %w", name, ErrConstTable)
	}
	return err
}

// EntryOf returns the entry of exactly this prefix. ok is false if the table has none.
func (p *Program) EntryOf(name string, prefix netip.Prefix) (not, ok bool) {
	in, err := p.tables.find(name)
	if err != nil {
		return false, false
	}
	number, _ := in.number(name)
	return in.entry(number, prefix)
}

// Longest returns the entry that decides whether a table contains an address: that of the
// longest prefix. ok is false if there is none.
func (p *Program) Longest(name string, a netip.Addr) (e TableEntry, ok bool) {
	in, err := p.tables.find(name)
	if err != nil {
		return e, false
	}
	number, _ := in.number(name)
	return in.longest(number, a)
}

func (t *Tables) entry(number uint32, prefix netip.Prefix) (not, ok bool) {
	p := placeIn(number, TableEntry{Prefix: prefix})
	in := t.families[p.family]
	if at := in.find(p.first, p.bits); at != 0 {
		return t.lists.entry(in.nodes[at].list, number)
	}
	return false, false
}

func (t *Tables) longest(number uint32, a netip.Addr) (e TableEntry, found bool) {
	p := placeIn(number, TableEntry{Prefix: netip.PrefixFrom(a, a.BitLen())})
	in := t.families[p.family]
	for at := in.root; at != 0; {
		n := &in.nodes[at]
		if !n.contains(p.first, p.bits) {
			break
		}
		if not, ok := t.lists.entry(n.list, number); ok {
			e, found = TableEntry{Prefix: n.prefix(int(p.family)), Not: not}, true
		}
		if n.bits == p.bits {
			break
		}
		at = n.child[p.first.bit(n.bits)]
	}
	return e, found
}
