package daemon

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/rundir"
	"weir/internal/killpoint"
)

// stores reports whether a table outlives a boot: set table-store asks for it, and no
// definition says what the table holds.
func (c *compiled) stores(name string) bool {
	if c.options.TableStore == "" {
		return false
	}
	info, err := c.program.TableInfo(name)
	return err == nil && info.Persist && !info.Const && !c.program.Gives(name)
}

// storedTables returns what tables held before the boot. A damaged record is set aside with a
// warning: the box has to start.
func (b *box) storedTables(rules *compiled) (map[string]*rundir.Table, error) {
	if rules.options.TableStore == "" {
		return nil, nil
	}
	kept, err := rundir.ReadTables(rules.options.TableStore, func(path string, damage error) error {
		aside, err := rundir.SetAside(path)
		if err == nil {
			b.cfg.Log.Warn("what a table held before the boot cannot be read; the table starts without it, and its record is kept",
				"record", aside, "error", damage)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the tables of before the boot in %s: %w", rules.options.TableStore, err)
	}
	maps.DeleteFunc(kept, func(name string, t *rundir.Table) bool { return !t.Made && !rules.stores(name) })
	return kept, nil
}

// storeTables stores the tables of rules that have come into force, and forgets all others
// unless an earlier load may come back.
func (b *box) storeTables(rules *compiled) error {
	b.stored = nil
	folder := rules.options.TableStore
	if folder == "" {
		return nil
	}
	b.stored = make(map[string]*rundir.TableRecord)
	var errs []error
	for name, entries := range rules.program.ChangedTables() {
		if rules.stores(name) {
			errs = append(errs, b.store(folder, name, b.tableOf(rules, name, entries)))
		}
	}
	if !b.unconfirmed {
		errs = append(errs, b.forgetOthers(folder))
	}
	return booted(errors.Join(errs...))
}

// pruneStore forgets the tables that the rules in force do not have.
func (b *box) pruneStore() error {
	if b.rules == nil || b.rules.options.TableStore == "" {
		return nil
	}
	return b.forgetOthers(b.rules.options.TableStore)
}

func (b *box) forgetOthers(folder string) error {
	return rundir.RemoveTables(folder, func(name string) bool { return b.stored[name] == nil })
}

func (b *box) store(folder, name string, t *rundir.Table) error {
	if err := killpoint.MkdirAll(folder); err != nil {
		return err
	}
	record, err := rundir.WriteTable(folder, name, t)
	if err == nil {
		b.stored[name] = record
	}
	return err
}

// storeTable stores the present contents of a table.
func (b *box) storeTable(name string) error {
	if !b.rules.stores(name) {
		return nil
	}
	if b.stored == nil {
		b.stored = make(map[string]*rundir.TableRecord)
	}
	return booted(b.store(b.rules.options.TableStore, name, b.tableOf(b.rules, name, b.rules.program.EntriesOf(name))))
}

// storeChange stores a change of a table that was made now.
func (b *box) storeChange(name string, put []ruleset.TableEntry, removed []netip.Prefix, now uint32) error {
	if record := b.stored[name]; record != nil && !record.Full() {
		return booted(record.Add(put, removed, now))
	}
	return b.storeTable(name)
}

// forgetStored removes what is stored of a table.
func (b *box) forgetStored(name string) error {
	record := b.stored[name]
	delete(b.stored, name)
	if record == nil {
		return nil
	}
	return booted(record.Remove())
}

// booted says what an error of the store means.
func booted(err error) error {
	if err != nil {
		err = fmt.Errorf("the tables are in force, but may not outlive a boot (set table-store): %w", err)
	}
	return err
}
