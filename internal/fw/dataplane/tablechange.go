package dataplane

import (
	"net/netip"

	"weir/internal/fw/ruleset"
)

// ReplaceTable replaces all entries of a table under traffic. Each packet finds either
// the old table or the new one. If several entries have the same prefix, the first
// counts. It returns how many entries have changed. If none has, the error says why. Else
// it is about their counters, or about memory that the next change frees. States and established packets are not touched. Only
// one caller may change tables at a time.
func (d *Dataplane) ReplaceTable(name string, entries []ruleset.TableEntry) (changed int, err error) {
	if !d.counts(name) {
		return d.live.change(d.live.program.ReplaceTable(name, entries))
	}
	if err := fitsCounters(d.live.program, len(entries)-d.live.program.TableLen(name)); err != nil {
		return 0, err
	}
	before := d.live.program.EntriesOf(name)
	if changed, err = d.live.change(d.live.program.ReplaceTable(name, entries)); err != nil {
		return changed, err
	}
	now := d.live.program.EntriesOf(name)
	stay := make(map[netip.Prefix]bool, len(now))
	for _, e := range now {
		stay[e.Prefix] = true
	}
	var removed []netip.Prefix
	for _, e := range before {
		if !stay[e.Prefix] {
			removed = append(removed, e.Prefix)
		}
	}
	return changed, d.changeCounters(name, now, removed)
}

// ChangeTable removes prefixes from a table and adds entries. Each address is either in
// the old table or in the new one, but the entries of one call do not change all at once.
// Otherwise it is like ReplaceTable.
func (d *Dataplane) ChangeTable(name string, put []ruleset.TableEntry, remove []netip.Prefix) (changed int, err error) {
	if d.counts(name) {
		if err := fitsCounters(d.live.program, len(put)); err != nil {
			return 0, err
		}
	}
	if changed, err = d.live.change(d.live.program.ChangeTable(name, put, remove)); err != nil {
		return changed, err
	}
	return changed, d.changeCounters(name, put, remove)
}

// counts reports whether the entries of a table have counters.
func (d *Dataplane) counts(name string) bool { return d.live.program.Counted(name) }

// TableEntries calls yield with all entries of a table, in order.
func (d *Dataplane) TableEntries(name string, yield func(ruleset.TableEntry) bool) error {
	return d.live.program.TableEntries(name, yield)
}

// ChangedTables returns the contents of the tables that were changed at run time.
func (d *Dataplane) ChangedTables() map[string][]ruleset.TableEntry {
	return d.live.program.ChangedTables()
}

// change writes an update that the program has made.
func (l *liveRules) change(u *ruleset.TableUpdate, err error) (changed int, _ error) {
	if err != nil {
		return 0, err
	}
	err = l.update(u)
	u.Done(err)
	if err != nil {
		return 0, err
	}
	return u.Changed, l.finish()
}
