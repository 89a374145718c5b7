package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/ruleset"
)

// Table does a command with a table. What each does is what pfctl -T does.
func (c *controller) Table(r *control.TableRequest) (*control.TableResult, error) {
	b := c.box
	b.mu.Lock()
	defer b.mu.Unlock()
	if max(len(r.Entries), b.rules.program.TableLen(r.Table)) > manyEntries {
		defer func() { go debug.FreeOSMemory() }() // nobody has to wait for it
	}
	t := &tableTask{box: b, request: r, program: b.rules.program, result: &control.TableResult{Total: len(r.Entries)}}
	r.Table = b.rules.program.TableName(r.Table)
	t.result.Table = r.Table
	do, ok := map[control.TableCommand]func() error{
		control.TableAdd: t.add, control.TableDelete: t.remove, control.TableReplace: t.replace,
		control.TableTest: t.test, control.TableExpire: t.expire, control.TableFlush: t.flush,
		control.TableZero: t.zero, control.TableShow: t.show, control.TableKill: t.kill, control.TableList: t.list,
	}[r.Command]
	if !ok {
		return nil, fmt.Errorf("%q is no command for tables", r.Command)
	}
	for i := range r.Entries {
		if p := r.Entries[i].Prefix; p != p.Masked() || p.Addr().Is4In6() {
			return nil, fmt.Errorf("%s is no network", p)
		}
	}
	return t.result, do()
}

// manyEntries is from how many entries on the daemon gives its memory back afterwards.
const manyEntries = 50_000

// A tableTask is one command. Its methods hold box.mu.
type tableTask struct {
	box     *box
	request *control.TableRequest
	program *ruleset.Program
	result  *control.TableResult
}

// check refuses a table that does not exist, or that may not change.
func (t *tableTask) check() error { return t.program.Changeable(t.request.Table) }

// mayMake refuses a table that may not change, or that make cannot make.
func (t *tableTask) mayMake() error {
	name := t.request.Table
	err := t.program.Changeable(name)
	if t.request.Given && errors.Is(err, ruleset.ErrConstTable) {
		return nil
	}
	if !errors.Is(err, ruleset.ErrNoTable) {
		return err
	}
	if anchor := anchorOf(name); anchor != "" {
		return fmt.Errorf("%w: the rules of an anchor find only the tables that the file defines in it: write table <%s> persist there", err, baseOf(name))
	}
	if limit := t.box.rules.options.MaxTables; limit > 0 && len(t.program.Tables()) >= int(limit) {
		return fmt.Errorf("there are as many tables as set limit tables allows: %d", limit)
	}
	t.result.Created = t.request.DryRun
	return nil
}

// make makes the table as pfctl does, if no file defines it. If only rules name it, it stays
// from now on without them.
func (t *tableTask) make() error {
	if !t.program.MakeTable(t.request.Table) {
		return nil
	}
	t.result.Created = true
	return t.box.recordTable(t.request.Table)
}

// each calls do for each entry of the request, with what the table has of it. do returns
// the entry's mark. An entry whose prefix came before in the request is left out.
func (t *tableTask) each(do func(e control.TableEntry, not, has bool) control.Mark) {
	entries := t.request.Entries
	var seen map[netip.Prefix]bool
	if t.request.Marks || mixed(entries) {
		seen = make(map[netip.Prefix]bool, len(entries))
	} else {
		// Neighbours touch the same memory.
		slices.SortFunc(entries, func(a, b control.TableEntry) int { return a.Prefix.Addr().Compare(b.Prefix.Addr()) })
	}
	var marks []byte
	for _, e := range entries {
		mark := control.MarkDuplicate
		if !seen[e.Prefix] {
			not, has := t.program.EntryOf(t.request.Table, e.Prefix)
			mark = do(e, not, has)
		}
		if seen != nil {
			seen[e.Prefix] = true
		}
		if t.request.Marks {
			marks = append(marks, byte(mark))
		}
	}
	t.result.Marks = string(marks)
}

// mixed reports whether only some entries are "!" entries. Then one prefix may be both.
func mixed(entries []control.TableEntry) bool {
	for i := range entries {
		if entries[i].Not != entries[0].Not {
			return true
		}
	}
	return false
}

// fit refuses more entries than set limit table-entries allows. put are new ones, in which
// prefixes may be repeated; so many others go.
func (t *tableTask) fit(put []ruleset.TableEntry, gone int) error {
	if t.fits(len(put)-gone) == nil {
		return nil
	}
	return t.fits(distinct(put) - gone)
}

func (t *tableTask) fits(more int) error {
	limit := t.box.rules.options.MaxTableEntries
	if limit == 0 || more <= 0 {
		return nil
	}
	entries := more
	for _, info := range t.program.Tables() {
		entries += info.Entries
	}
	if entries > int(limit) {
		return fmt.Errorf("%d entries of tables are more than set limit table-entries allows: %d", entries, limit)
	}
	return nil
}

func (t *tableTask) add() error {
	if err := t.mayMake(); err != nil {
		return err
	}
	put := make([]ruleset.TableEntry, 0, len(t.request.Entries))
	t.each(func(e control.TableEntry, not, has bool) control.Mark {
		switch {
		case !has:
			put = append(put, ruleset.TableEntry(e))
			return control.MarkAdded
		case not != e.Not:
			return control.MarkConflict
		}
		return control.MarkNone
	})
	if err := t.fit(put, 0); err != nil {
		return err
	}
	if t.request.DryRun {
		t.result.Added = distinct(put)
		return nil
	}
	if err := t.make(); err != nil {
		return err
	}
	changed, err := t.box.changeTableLocked(t.request.Table, put, nil)
	t.result.Added = changed
	return err
}

// distinct returns how many prefixes entries have.
func distinct(entries []ruleset.TableEntry) int {
	seen := make(map[netip.Prefix]bool, len(entries))
	for _, e := range entries {
		seen[e.Prefix] = true
	}
	return len(seen)
}

func (t *tableTask) remove() error {
	if err := t.check(); err != nil {
		return err
	}
	gone := make([]ruleset.TableEntry, 0, len(t.request.Entries))
	t.each(func(e control.TableEntry, not, has bool) control.Mark {
		switch {
		case !has:
			return control.MarkNone
		case not != e.Not:
			return control.MarkConflict
		}
		gone = append(gone, ruleset.TableEntry(e))
		return control.MarkDeleted
	})
	if t.request.DryRun {
		t.result.Deleted = distinct(gone)
		return nil
	}
	changed, err := t.box.changeTableLocked(t.request.Table, nil, prefixesOf(gone))
	t.result.Deleted = changed
	return err
}

func prefixesOf(entries []ruleset.TableEntry) []netip.Prefix {
	prefixes := make([]netip.Prefix, len(entries))
	for i := range entries {
		prefixes[i] = entries[i].Prefix
	}
	return prefixes
}

func (t *tableTask) replace() error {
	if err := t.mayMake(); err != nil {
		return err
	}
	name, r := t.request.Table, t.result
	before := t.program.TableLen(name)
	wanted := make([]ruleset.TableEntry, 0, len(t.request.Entries))
	turned := make(map[netip.Prefix]bool) // those that get or lose their "!"
	t.each(func(e control.TableEntry, not, has bool) control.Mark {
		wanted = append(wanted, ruleset.TableEntry(e))
		switch {
		case !has:
			return control.MarkAdded
		case not != e.Not:
			turned[e.Prefix] = true
			return control.MarkChanged
		}
		return control.MarkNone
	})
	if err := t.fit(wanted, before); err != nil {
		return err
	}
	if t.request.Marks || t.request.DryRun {
		t.compare(wanted, len(turned))
	}
	if t.request.DryRun {
		return nil
	}
	if err := t.make(); err != nil {
		return err
	}
	changed, err := t.box.replaceTableLocked(name, wanted)
	if changed == 0 {
		*r = control.TableResult{Created: r.Created, Total: r.Total}
		return err
	}
	grown := t.program.TableLen(name) - before
	r.Changed = len(turned)
	r.Added, r.Deleted = (changed-r.Changed+grown)/2, (changed-r.Changed-grown)/2
	return err
}

// compare says what a replacement changes: how many entries, and which are gone.
func (t *tableTask) compare(wanted []ruleset.TableEntry, turned int) {
	stay := make(map[netip.Prefix]bool, len(wanted))
	for _, e := range wanted {
		stay[e.Prefix] = true
	}
	r := t.result
	for e := range t.box.entriesOf(t.request.Table) {
		if stay[e.Prefix] {
			r.Added--
			continue
		}
		r.Deleted++
		if t.request.Marks {
			r.Entries = append(r.Entries, control.DatedEntry{TableEntry: control.TableEntry(e)})
		}
	}
	r.Added += len(stay)
	r.Changed = turned
}

// test looks up addresses.
func (t *tableTask) test() error {
	if _, err := t.program.TableInfo(t.request.Table); err != nil {
		return err
	}
	var marks []byte
	for _, e := range t.request.Entries {
		if e.Not || !e.Prefix.IsSingleIP() {
			return fmt.Errorf("%s is no single address", e.Prefix)
		}
		found, ok := t.program.Longest(t.request.Table, e.Prefix.Addr())
		mark, text := control.MarkNone, ""
		if ok {
			text = found.Prefix.String()
			if found.Not {
				text = "!" + text
			}
		}
		if ok && !found.Not {
			t.result.Matched++
			mark = control.MarkMatch
		}
		if t.request.Marks {
			marks, t.result.Found = append(marks, byte(mark)), append(t.result.Found, text)
		}
	}
	t.result.Marks = string(marks)
	return nil
}

// expire removes the entries whose statistics were cleared, or that were put there, long
// enough ago.
func (t *tableTask) expire() error {
	if err := t.check(); err != nil {
		return err
	}
	name := t.request.Table
	since, err := t.sinceOf(name)
	if err != nil {
		return err
	}
	latest := time.Now().Add(-t.request.Lifetime)
	var gone []netip.Prefix
	for e := range t.box.entriesOf(name) {
		if at := since(e.Prefix); !at.After(latest) {
			gone = append(gone, e.Prefix)
			if t.request.Marks {
				t.result.Entries = append(t.result.Entries, control.DatedEntry{TableEntry: control.TableEntry(e)})
			}
		}
	}
	t.result.Total, t.result.Deleted = len(gone), len(gone)
	if t.request.DryRun {
		return nil
	}
	t.result.Deleted, err = t.box.changeTableLocked(name, nil, gone)
	return err
}

// sinceOf returns when entries were put into a table, or their statistics were cleared.
func (t *tableTask) sinceOf(name string) (func(netip.Prefix) time.Time, error) {
	times := t.box.timesOf(t.box.rules, name)
	if !t.program.Counted(name) {
		return func(p netip.Prefix) time.Time { return time.Unix(int64(times.Of(p)), 0) }, nil
	}
	counters, err := t.box.dp.View().TableCounters(name)
	if err != nil {
		return nil, err
	}
	zero, err := t.box.cfg.Folder.ReadZero(name)
	if err != nil {
		return nil, err
	}
	since := make(map[netip.Prefix]time.Time, len(counters))
	for i := range counters {
		since[counters[i].Prefix] = zero.Since(counters[i].Prefix, counters[i].Since)
	}
	return func(p netip.Prefix) time.Time {
		if at, ok := since[p]; ok {
			return at
		}
		return time.Unix(int64(times.Of(p)), 0)
	}, nil
}

func (t *tableTask) flush() (err error) {
	if err := t.check(); err != nil {
		return err
	}
	name := t.request.Table
	t.result.Deleted = t.program.TableLen(name)
	if t.request.DryRun {
		return nil
	}
	t.result.Deleted, err = t.box.replaceTableLocked(name, nil)
	return err
}

func (t *tableTask) show() error {
	name := t.request.Table
	info, err := t.program.TableInfo(name)
	if err != nil {
		return err
	}
	since, err := t.sinceOf(name)
	if err != nil {
		return err
	}
	t.result.Entries = make([]control.DatedEntry, 0, info.Entries)
	for e := range t.box.entriesOf(name) {
		t.result.Entries = append(t.result.Entries, control.DatedEntry{TableEntry: control.TableEntry(e), Since: since(e.Prefix)})
	}
	return nil
}

// kill removes a table that a command made, or that an anchor keeps.
func (t *tableTask) kill() error {
	name := t.request.Table
	info, err := t.program.TableInfo(name)
	switch {
	case err != nil:
		return err
	case !info.Made && info.Rules == 0 && t.box.anchorKeeps(name):
		t.result.Deleted = 1
		if t.request.DryRun {
			return nil
		}
		return t.box.dropKeptTable(name)
	case !info.Made:
		return fmt.Errorf("%s: the rules define the table: weir table flush empties it, and weir load forgets it if the new file does not have it", name)
	case info.Rules > 0:
		return fmt.Errorf("%s: %s it: weir table flush empties it", name, named(info.Rules))
	}
	t.result.Deleted = 1
	if t.request.DryRun {
		return nil
	}
	t.program.RemoveTable(name)
	delete(t.box.rules.times, name)
	err = t.box.forgetStored(name)
	record := t.box.tables[name]
	delete(t.box.tables, name)
	if record != nil {
		err = errors.Join(err, record.Remove())
	}
	return err
}

func named(rules int) string {
	if rules == 1 {
		return "a rule names"
	}
	return fmt.Sprintf("%d rules name", rules)
}

func (t *tableTask) list() error {
	for _, info := range t.program.Tables() {
		name, anchor, _ := strings.Cut(info.Name, "@")
		one := control.TableInfo{
			Table: info.Name, Name: name, Anchor: cmp.Or(anchor, info.Anchor), Entries: info.Entries, Const: info.Const, Persist: info.Persist,
			Counters: info.Counters, Made: info.Made, Rules: info.Rules, Anchors: info.Anchors,
		}
		if l := t.box.loaded.Load(); l != nil {
			one.Cleared = l.Time
		}
		zero, err := t.box.cfg.Folder.ReadZero(info.Name)
		if err != nil {
			return err
		}
		if zero != nil && zero.All.After(one.Cleared) {
			one.Cleared = zero.All
		}
		t.result.Tables = append(t.result.Tables, one)
	}
	return nil
}

// anchorOf returns the anchor in the name of a table, and baseOf the rest.
func anchorOf(name string) string {
	_, anchor, _ := strings.Cut(name, "@")
	return anchor
}

func baseOf(name string) string {
	base, _, _ := strings.Cut(name, "@")
	return base
}
