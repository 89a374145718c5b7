package ruleset

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"weir/pf/resolve"
)

// A TableUpdate says what to write into the maps of a dataplane for a change of tables.
// Write Vectors, then Classes, which no packet uses yet. Then there are three cases. An
// Index replaces the one in force and has no overrides. Overrides are written one by one,
// the innermost first, so that each address is either in the old tables or in the new
// ones. With Whole, all Overrides replace those in force at once. Finish with Done.
type TableUpdate struct {
	Changed   int // number of changed entries
	Vectors   map[uint32]Bits
	Classes   map[uint32]Class
	Index     *TableIndex
	Whole     bool
	Overrides []Override

	program *Program
	table   string
	undo    []edit
}

// An edit adds a prefix to a table as an entry or, with gone, removes it.
type edit struct {
	resolve.TableEntry
	gone bool
}

// mostOverrides is how many prefixes may change before a new index is made. The larger
// the index, the fewer. The programs have room for this many.
const (
	MaxOverrides   = 8192
	leastOverrides = 512
	indexShare     = 64 // a change pays for this many of the index's entries
)

func (t *Tables) mostOverrides() int {
	n := 0
	for _, entries := range t.entries {
		n += entries
	}
	return min(max(n/indexShare, leastOverrides), MaxOverrides)
}

// find returns the Tables that contain a table.
func (t *liveTables) find(name string) (*Tables, error) {
	for _, in := range []*Tables{t.named, t.idle} {
		if _, ok := in.number(name); ok {
			return in, nil
		}
	}
	if in := t.alone[name]; in != nil {
		return in, nil
	}
	return nil, fmt.Errorf("%s: %w", name, ErrNoTable)
}

// changeable returns the Tables that contain a table, if it may change.
func (t *liveTables) changeable(name string) (*Tables, error) {
	in, err := t.find(name)
	if err == nil && t.fixed[name] {
		err = fmt.Errorf("%s: %w", name, ErrConstTable)
	}
	return in, err
}

// ChangeTable removes prefixes from a table and adds entries. After an error nothing has
// changed.
func (p *Program) ChangeTable(name string, put []resolve.TableEntry, remove []netip.Prefix) (*TableUpdate, error) {
	if _, err := p.tables.changeable(name); err != nil {
		return nil, err
	}
	edits := make([]edit, 0, len(remove)+len(put))
	for _, prefix := range remove {
		edits = append(edits, edit{resolve.TableEntry{Prefix: prefix}, true})
	}
	for _, e := range put {
		edits = append(edits, edit{e, false})
	}
	return p.updateTable(name, edits, false)
}

// ReplaceTable replaces all entries of a table, which may be const: a rule file may say what
// it holds. If several have the same prefix, the first counts. After an error nothing has
// changed.
func (p *Program) ReplaceTable(name string, entries []resolve.TableEntry) (*TableUpdate, error) {
	in, err := p.tables.find(name)
	if err != nil {
		return nil, err
	}
	return p.updateTable(name, in.difference(name, entries), true)
}

// TableEntries calls yield with all entries of a table, in order.
func (p *Program) TableEntries(name string, yield func(resolve.TableEntry) bool) error {
	in, err := p.tables.find(name)
	if err != nil {
		return err
	}
	return in.Entries(name, yield)
}

func (p *Program) updateTable(name string, edits []edit, whole bool) (_ *TableUpdate, err error) {
	in, err := p.tables.find(name)
	if err != nil {
		return nil, err
	}
	u := &TableUpdate{Vectors: map[uint32]Bits{}, Classes: map[uint32]Class{}, Whole: whole, program: p, table: name, undo: make([]edit, 0, len(edits))}
	in.behind = in.behind || in != p.tables.named || len(edits) > in.mostOverrides()
	for _, e := range edits {
		if err = in.apply(u, name, e); err != nil {
			return nil, p.undo(u, in, err)
		}
	}
	if in != p.tables.named {
		u.Whole = false // none of it is in the maps
		return u, nil
	}
	if in.behind || len(in.changes[0])+len(in.changes[1]) > in.mostOverrides() {
		u.Overrides, u.Whole = nil, false
		if u.Index, err = in.MakeIndex(); err != nil {
			return nil, p.undo(u, in, err)
		}
		in.sets.forgetFresh()
	} else if whole {
		u.Overrides = in.Overridden()
	}
	if err = p.grow(u); err != nil {
		return nil, p.undo(u, in, err)
	}
	return u, nil
}

// apply makes one edit.
func (t *Tables) apply(u *TableUpdate, name string, e edit) error {
	e.Prefix = e.Prefix.Masked()
	if !e.Prefix.IsValid() {
		return fmt.Errorf("%s: an entry without a prefix", name)
	}
	c, err := t.change(name, e.TableEntry, e.gone)
	if err != nil || !c.changed {
		return err
	}
	u.Changed++
	u.undo = append(u.undo, edit{resolve.TableEntry{Prefix: e.Prefix, Not: c.not}, !c.had})
	slices.Reverse(c.overrides)
	u.Overrides = append(u.Overrides, c.overrides...)
	return nil
}

// difference returns the edits that leave a table with exactly these entries.
func (t *Tables) difference(name string, entries []resolve.TableEntry) []edit {
	wanted := inOrder(entries)
	var edits []edit
	putUpTo := func(before resolve.TableEntry) (same bool) {
		for len(wanted) > 0 {
			order := compareEntries(wanted[0], before)
			if order > 0 {
				break
			}
			if order < 0 || wanted[0].Not != before.Not {
				edits = append(edits, edit{wanted[0], false})
			}
			wanted = wanted[1:]
			if order == 0 {
				return true
			}
		}
		return false
	}
	_ = t.Entries(name, func(before resolve.TableEntry) bool {
		if !putUpTo(before) {
			edits = append(edits, edit{before, true})
		}
		return true
	})
	for _, e := range wanted {
		edits = append(edits, edit{e, false})
	}
	return edits
}

// inOrder returns entries in the order of Tables.Entries. It keeps the first of several
// with the same prefix.
func inOrder(entries []resolve.TableEntry) []resolve.TableEntry {
	type numbered struct {
		resolve.TableEntry
		n int
	}
	sorted := make([]numbered, len(entries))
	for i, e := range entries {
		sorted[i] = numbered{resolve.TableEntry{Prefix: e.Prefix.Masked(), Not: e.Not}, i}
	}
	slices.SortFunc(sorted, func(a, b numbered) int {
		return cmp.Or(compareEntries(a.TableEntry, b.TableEntry), cmp.Compare(a.n, b.n))
	})
	var first []resolve.TableEntry
	for _, e := range sorted {
		if n := len(first); n == 0 || first[n-1].Prefix != e.Prefix {
			first = append(first, e.TableEntry)
		}
	}
	return first
}

func compareEntries(a, b resolve.TableEntry) int {
	return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
}

// undo undoes an update that was not written.
func (p *Program) undo(u *TableUpdate, in *Tables, err error) error {
	u.undoEdits(in)
	for index := range u.Classes {
		for i := range p.tables.fields {
			if f := &p.tables.fields[i]; int(index) >= int(f.at) && int(index) < p.classesEnd(f) {
				p.tables.vectors.free(f.owns[index-f.at])
				delete(f.owns, index-f.at)
			}
		}
	}
	in.sets.forget(in.sets.take())
	return err
}

// undoEdits undoes the edits. The maps are then out of date, so the next update makes an
// index.
func (u *TableUpdate) undoEdits(in *Tables) {
	in.behind = true
	for _, e := range slices.Backward(u.undo) {
		_, _ = in.change(u.table, e.TableEntry, e.gone)
	}
}

// Done tells the program that an update is in force and that no packet uses the old
// contents. With an error, it says that the update could not be written.
func (u *TableUpdate) Done(err error) {
	p := u.program
	in, _ := p.tables.find(u.table)
	if err != nil {
		u.undoEdits(in) // packets may hold new sets: the next index tells which
		return
	}
	p.tables.changed[u.table] = true
	if u.Index != nil {
		p.tables.forgetClasses(in.sets.release())
	}
}

// Gives reports whether the definition of a table gives its contents, even none ("{ }").
func (p *Program) Gives(name string) bool { return p.tables.given[name] }

// EqualTables reports whether two programs have the same definitions of tables.
func (p *Program) EqualTables(q *Program) bool { return p.tables.hash == q.tables.hash }

// HasChanged reports whether a table was changed since the program was compiled, or before and
// kept.
func (p *Program) HasChanged(name string) bool { return p.tables.changed[name] }

// ChangedNames returns the names of the tables that were changed since the program was compiled, or
// before and kept.
func (p *Program) ChangedNames() []string { return slices.Sorted(maps.Keys(p.tables.changed)) }

// ChangedTables returns the contents of the tables that were changed since the program
// was compiled, or before and kept.
func (p *Program) ChangedTables() map[string][]resolve.TableEntry {
	all := make(map[string][]resolve.TableEntry, len(p.tables.changed))
	for name := range p.tables.changed {
		all[name] = p.EntriesOf(name)
	}
	return all
}

// EntriesOf returns all entries of a table, in order; none if there is no such table.
func (p *Program) EntriesOf(name string) []resolve.TableEntry {
	entries := make([]resolve.TableEntry, 0, p.TableLen(name))
	_ = p.TableEntries(name, func(e resolve.TableEntry) bool {
		entries = append(entries, e)
		return true
	})
	return entries
}

// KeepTables copies the contents of the old program's tables into a program that is not
// written yet. It leaves out tables that the program does not have, or has as const.
func (p *Program) KeepTables(kept map[string][]resolve.TableEntry) error {
	for name, entries := range kept {
		in, err := p.tables.changeable(name)
		if err != nil {
			continue
		}
		in.behind = true
		for _, e := range in.difference(name, entries) {
			if err := in.apply(new(TableUpdate), name, e); err != nil {
				return err
			}
		}
		p.tables.changed[name] = true
	}
	return p.makeTables()
}
