package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/rundir"
	"weir/internal/killpoint"
)

// keepTables copies the contents of tables that were changed at run time into new rules.
// As in pf, a load resets tables whose definition gives their contents, and keeps all
// others. A start with the text in force, and a reload after a change of the machine,
// reset nothing.
func (b *box) keepTables(source Source, rules *compiled) error {
	kept, err := b.changedTables(source, rules)
	if err != nil || len(kept) == 0 {
		return err
	}
	contents := make(map[string][]ruleset.TableEntry, len(kept))
	for name, t := range kept {
		rules.take(name, t)
		contents[name] = t.Entries
	}
	if err := rules.program.KeepTables(contents); err != nil {
		return fmt.Errorf("keep what was changed in tables: %w", err)
	}
	return nil
}

// take makes a table if it was made at run time, and keeps the times of its entries.
func (c *compiled) take(name string, t *rundir.Table) {
	if t.Made {
		c.program.KeepMade(name, t.Anchor)
	}
	if c.times == nil {
		c.times = make(map[string]*rundir.Times)
	}
	c.times[name] = t.Times
}

// keepLaterTables keeps what another daemon has changed in tables after keepTables. That
// daemon has ended.
func (b *box) keepLaterTables(source Source, dp *dataplane.Dataplane, rules *compiled) error {
	kept, err := b.changedTables(source, rules)
	if err != nil {
		return err
	}
	for _, name := range rules.program.MadeTables() {
		if kept[name] == nil {
			rules.program.RemoveTable(name)
		}
	}
	for name, t := range kept {
		rules.take(name, t)
		_, err := dp.ReplaceTable(name, t.Entries)
		if err != nil && !errors.Is(err, ruleset.ErrNoTable) {
			return fmt.Errorf("keep what was changed in tables: %w", err)
		}
	}
	return nil
}

// changedTables returns the contents that new rules keep. A rollback brings those back that
// the load before it has lost or reset.
func (b *box) changedTables(source Source, rules *compiled) (map[string]*rundir.Table, error) {
	kept, err := b.presentTables(source, rules)
	if err != nil || len(source.tables) == 0 {
		return kept, err
	}
	if kept == nil {
		kept = make(map[string]*rundir.Table)
	}
	for name, t := range source.tables {
		lost := kept[name] == nil
		if b.rules != nil && !lost {
			lost = b.rules.program.Gives(name)
		}
		if lost {
			kept[name] = t
		}
	}
	return kept, nil
}

// presentTables returns the contents that new rules keep of what is in force.
func (b *box) presentTables(source Source, rules *compiled) (map[string]*rundir.Table, error) {
	var kept map[string]*rundir.Table
	var same bool
	if b.rules != nil {
		kept, same = make(map[string]*rundir.Table), true
		if b.rules.options.TableStore != rules.options.TableStore { // as after a boot: the built-in rules have none
			stored, err := b.storedTables(rules)
			if err != nil {
				return nil, err
			}
			maps.Copy(kept, stored)
		}
		for name, entries := range b.rules.program.ChangedTables() {
			if !rules.program.Gives(name) || source.keepsTable(&b.source, name) {
				kept[name] = b.tableOf(b.rules, name, entries)
			}
		}
	} else {
		generation, err := dataplane.LiveGeneration(b.dir)
		if errors.Is(err, dataplane.ErrNotLoaded) || errors.Is(err, dataplane.ErrLayout) {
			return b.storedTables(rules)
		}
		if err == nil {
			kept, err = rundir.ReadTables(b.cfg.Folder.TablesOf(generation), unreadable)
		}
		if err != nil {
			return nil, fmt.Errorf("read what was changed in tables: %w", err)
		}
		if before, err := b.sourceOf(generation); err == nil {
			if kept, err = b.settle(kept, before.Settling, rules); err != nil {
				return nil, err
			}
			same = source.sameText(before)
		}
	}
	if !same {
		maps.DeleteFunc(kept, func(name string, _ *rundir.Table) bool { return rules.program.Gives(name) })
	}
	return kept, nil
}

// settle puts what tables held before the boot in place of records that may be those of other rules: the
// daemon was killed while it replaced them.
func (b *box) settle(kept map[string]*rundir.Table, settling []string, rules *compiled) (map[string]*rundir.Table, error) {
	if len(settling) == 0 {
		return kept, nil
	}
	stored, err := b.storedTables(rules)
	settled := maps.Clone(stored)
	maps.DeleteFunc(settled, func(name string, _ *rundir.Table) bool { return !slices.Contains(settling, name) })
	maps.DeleteFunc(kept, func(name string, _ *rundir.Table) bool { return slices.Contains(settling, name) })
	if settled == nil {
		return kept, err
	}
	maps.Copy(settled, kept)
	return settled, err
}

// unreadable has an unreadable record of a table be an error.
func unreadable(_ string, err error) error { return err }

// tableOf returns what the record of a table says.
func (b *box) tableOf(rules *compiled, name string, entries []ruleset.TableEntry) *rundir.Table {
	t := &rundir.Table{Entries: entries, Times: b.timesOf(rules, name)}
	if info, err := rules.program.TableInfo(name); err == nil && info.Made {
		t.Made, t.Anchor = true, info.Anchor
	}
	return t
}

// timesOf returns when the entries of a table were put there.
func (b *box) timesOf(rules *compiled, name string) *rundir.Times {
	if rules.times == nil {
		rules.times = make(map[string]*rundir.Times)
	}
	if rules.times[name] == nil {
		loaded := time.Now()
		if l := b.loaded.Load(); l != nil {
			loaded = l.Time
		}
		rules.times[name] = rundir.NewTimes(uint32(loaded.Unix()))
	}
	return rules.times[name]
}

// recordTables records the contents of changed tables for a generation before it is live.
func (b *box) recordTables(dp *dataplane.Dataplane, rules *compiled) (map[string]*rundir.TableRecord, error) {
	records := make(map[string]*rundir.TableRecord)
	folder := b.cfg.Folder.TablesOf(dp.Generation())
	if err := killpoint.RemoveAll(folder); err != nil { // of a commit that failed
		return nil, fmt.Errorf("remove records of tables: %w", err)
	}
	for name, entries := range dp.ChangedTables() {
		if err := killpoint.MkdirAll(folder); err != nil {
			return nil, fmt.Errorf("make a folder for records of tables: %w", err)
		}
		record, err := rundir.WriteTable(folder, name, b.tableOf(rules, name, entries))
		if err != nil {
			return nil, err
		}
		records[name] = record
	}
	return records, nil
}

// pruneTables removes the records of all generations except the one in force.
func (b *box) pruneTables() error {
	folders, err := os.ReadDir(b.cfg.Folder.Tables())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list the records of tables: %w", err)
	}
	keep := b.cfg.Folder.TablesOf(b.dp.Generation())
	var errs []error
	for _, f := range folders {
		if path := filepath.Join(b.cfg.Folder.Tables(), f.Name()); path != keep {
			errs = append(errs, killpoint.RemoveAll(path))
		}
	}
	return errors.Join(errs...)
}

// changeTable removes prefixes from a table and adds entries, under traffic. It returns
// how many entries have changed.
func (b *box) changeTable(name string, put []ruleset.TableEntry, remove []netip.Prefix) (changed int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changeTableLocked(name, put, remove)
}

// changeTableLocked is changeTable for callers that hold b.mu.
func (b *box) changeTableLocked(name string, put []ruleset.TableEntry, remove []netip.Prefix) (changed int, err error) {
	count, times := b.rules.program.TableLen(name), b.timesOf(b.rules, name)
	if changed, err = b.dp.ChangeTable(name, put, remove); changed == 0 {
		return 0, err
	}
	now := uint32(time.Now().Unix())
	times.Remove(remove)
	times.Put(put, now, count, b.entriesOf(name))
	if record := b.tables[name]; record != nil && !record.Full() {
		return changed, errors.Join(err, lasting(record.Add(put, remove, now)), b.storeChange(name, put, remove, now))
	}
	return changed, errors.Join(err, b.recordTable(name))
}

// replaceTable replaces all entries of a table, under traffic.
func (b *box) replaceTable(name string, entries []ruleset.TableEntry) (changed int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.rules.program.Changeable(name); err != nil {
		return 0, err
	}
	return b.replaceTableLocked(name, entries)
}

// replaceTableLocked is replaceTable for callers that hold b.mu.
func (b *box) replaceTableLocked(name string, entries []ruleset.TableEntry) (changed int, err error) {
	fresh := b.freshIn(name, entries)
	if changed, err = b.dp.ReplaceTable(name, entries); changed == 0 {
		return 0, err
	}
	b.dateReplaced(name, fresh)
	return changed, errors.Join(err, b.recordTable(name))
}

// freshIn returns the entries that a table does not have. nil: it has none of them.
func (b *box) freshIn(name string, entries []ruleset.TableEntry) []ruleset.TableEntry {
	if b.rules.program.TableLen(name) == 0 {
		return nil
	}
	fresh := make([]ruleset.TableEntry, 0)
	for _, e := range entries {
		if not, has := b.rules.program.EntryOf(name, e.Prefix.Masked()); !has || not != e.Not {
			fresh = append(fresh, e)
		}
	}
	return fresh
}

// dateReplaced dates the entries of a table that was replaced whole.
func (b *box) dateReplaced(name string, fresh []ruleset.TableEntry) {
	now, times := uint32(time.Now().Unix()), b.timesOf(b.rules, name)
	if fresh == nil {
		*times = *rundir.NewTimes(now)
		return
	}
	times.Keep(func(p netip.Prefix) bool {
		_, has := b.rules.program.EntryOf(name, p)
		return has
	})
	times.Put(fresh, now, b.rules.program.TableLen(name), b.entriesOf(name))
}

// entriesOf returns a function that yields the entries of a table that exists.
func (b *box) entriesOf(name string) func(yield func(ruleset.TableEntry) bool) {
	return func(yield func(ruleset.TableEntry) bool) { _ = b.dp.TableEntries(name, yield) }
}

// recordTable records the present contents of a table.
func (b *box) recordTable(name string) error {
	folder := b.cfg.Folder.TablesOf(b.dp.Generation())
	if err := killpoint.MkdirAll(folder); err != nil {
		return lasting(err)
	}
	record, err := rundir.WriteTable(folder, name, b.tableOf(b.rules, name, b.rules.program.EntriesOf(name)))
	if err != nil {
		return lasting(err)
	}
	b.tables[name] = record
	return b.storeTable(name)
}

// lasting says what an error of a record means.
func lasting(err error) error {
	if err != nil {
		err = fmt.Errorf("the change is in force, but it ends with this daemon: %w", err)
	}
	return err
}

// tableEntries returns all entries of a table, in order.
func (b *box) tableEntries(name string) (entries []ruleset.TableEntry, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	err = b.dp.TableEntries(name, func(e ruleset.TableEntry) bool {
		entries = append(entries, e)
		return true
	})
	return entries, err
}

// ChangeTable changes a table under traffic.
func (c *controller) ChangeTable(r *control.TableChange) (*control.TableChanged, error) {
	put := make([]ruleset.TableEntry, len(r.Put))
	for i, e := range r.Put {
		put[i] = ruleset.TableEntry(e)
	}
	var changed int
	var err error
	if r.Whole {
		changed, err = c.box.replaceTable(r.Table, put)
	} else {
		changed, err = c.box.changeTable(r.Table, put, r.Remove)
	}
	return &control.TableChanged{Changed: changed}, err
}

// ReadTable returns the entries of a table.
func (c *controller) ReadTable(r *control.TableRead) (*control.TableEntries, error) {
	entries, err := c.box.tableEntries(r.Table)
	result := &control.TableEntries{Entries: make([]control.TableEntry, len(entries))}
	for i, e := range entries {
		result.Entries[i] = control.TableEntry(e)
	}
	return result, err
}
