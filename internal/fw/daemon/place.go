package daemon

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/rundir"
	"weir/internal/killpoint"
	"weir/pf/resolve"
)

// replaceInPlace replaces rules without loading programs, if nothing else has changed. done is
// false if the programs must be loaded again. After an error the old rules are in force.
func (b *box) replaceInPlace(source Source, rs *resolve.Ruleset, rules *compiled, m *machine) (done bool, err error) {
	keep, why := b.keepInPlace(source, rules)
	if why == "" {
		why = b.programInPlace(source, rs, rules, m, keep)
	}
	if why != "" {
		b.cfg.Log.Info("all programs are loaded anew", "why", why)
		return false, nil
	}
	rules.base = b.rules.base
	b.keepTimes(rules)
	rules.recorded = recordedInPlace(b.rules.recorded, rules)
	if err := b.divertOn(rules); err != nil {
		return false, err
	}
	tables, err := b.putInPlace(source, rules)
	if errors.Is(err, dataplane.ErrNoRoom) {
		b.cfg.Log.Info("all programs are loaded anew", "why", err)
		rules.recorded, rules.times = rules.texts, nil
		return false, nil
	}
	if err != nil {
		b.divertOff()
		return false, err
	}
	storesOthers := !rules.program.EqualTables(b.rules.program) || rules.options.TableStore != b.rules.options.TableStore || !maps.Equal(tables, b.tables)
	b.tables = tables
	b.source, b.rules, b.host = source, rules, m.host
	b.endSpreadingNow()
	if storesOthers {
		if err := b.storeTables(rules); err != nil {
			b.cfg.Log.Error("store tables", "error", err)
		}
	}
	b.divertOff()
	b.noteLoaded(false)
	b.cfg.Log.Info("rules were replaced in place; no program was loaded")
	b.updateLater(b.updateInterfaces(m))
	return true, nil
}

// programInPlace makes the program that replaces the one in force. It returns why that is not
// possible.
func (b *box) programInPlace(source Source, rs *resolve.Ruleset, rules *compiled, m *machine, keep []int) (why string) {
	program, err := b.rules.program.Reload(rs, rules.snapshot(rs, m), keep)
	if err != nil {
		return err.Error() // if the rules are at fault, compiling them says so again
	}
	rules.program = program
	if err := b.keepTables(source, rules); err != nil {
		return err.Error()
	}
	return ""
}

// keepInPlace returns which rules in force stay if others are replaced. Else it
// returns why that is not possible.
func (b *box) keepInPlace(source Source, rules *compiled) (keep []int, why string) {
	if source.Builtin || b.source.Builtin {
		return nil, "the built-in rules are loaded or replaced"
	}
	if !sameForPrograms(b.rules.options, rules.options) {
		return nil, "options have changed"
	}
	if b.dp.Crowded() {
		return nil, "the numbers of rule paths are nearly used up"
	}
	keep = keepLists(b.rules.lists, rules.lists, ruleset.KeepParts(b.rules.rules, rules.rules))
	b.beginOnce(rules, keep)
	return keep, ""
}

// sameForPrograms reports whether programs that were loaded with some options do what others
// say, too.
func sameForPrograms(before, now resolve.Options) bool {
	before.Timeouts, before.MaxStates, before.MaxSources = now.Timeouts, now.MaxStates, now.MaxSources // they read these from memory
	before.Skip, before.Groups = now.Skip, now.Groups                                                  // they read what is an interface's from its entry
	before.FragmentsAlone, before.FragmentsListed = now.FragmentsAlone, now.FragmentsListed            // likewise
	before.ImplicitPass = now.ImplicitPass                                                             // it is replaced with the rules
	before.PPPoE, before.WireGuard, before.IKEv2 = now.PPPoE, now.WireGuard, now.IKEv2                 // the dataplane is told of sessions and interfaces, not of statements
	if len(before.Collectors) > 0 && len(now.Collectors) > 0 {                                         // the daemon tells them
		before.Collectors = now.Collectors
	}
	before.Gateways = now.Gateways                                                // likewise of those that are up
	before.MaxTables, before.MaxTableEntries = now.MaxTables, now.MaxTableEntries // the daemon's alone
	before.PfctlMayOpen, before.Optimization, before.TableStore = now.PfctlMayOpen, now.Optimization, now.TableStore
	if len(before.Spreads) > 0 && len(now.Spreads) > 0 { // each second the daemon does what they say
		before.Spreads = now.Spreads
	}
	return reflect.DeepEqual(before, now)
}

// beginOnce makes the rules with once new whose load is another one than before: they begin
// anew.
func (b *box) beginOnce(rules *compiled, keep []int) {
	old := ruleset.Snapshot{Load: b.rules.load, Loads: b.rules.loads}
	now := ruleset.Snapshot{Load: rules.load, Loads: rules.loads}
	for number, before := range keep {
		if number < len(rules.lists) || before == ruleset.New {
			continue
		}
		if r := rules.rules[number-len(rules.lists)]; r.Once && old.LoadOf(r) != now.LoadOf(r) {
			keep[number] = ruleset.New
		}
	}
}

// keepLists puts which rules of translation lists stay before which filter rules do.
func keepLists(old, lists []*resolve.Rule, filter []int) []int {
	keep := ruleset.KeepParts(old, lists)
	for _, number := range filter {
		if number != ruleset.New {
			number += len(old)
		}
		keep = append(keep, number)
	}
	return keep
}

// keepTimes keeps the times of the tables that hold what their definitions say, as they did before, if
// no definition differs. Else such entries are as old as the load, as after any other load.
func (b *box) keepTimes(rules *compiled) {
	if !rules.program.EqualTables(b.rules.program) {
		return
	}
	for name, times := range b.rules.times {
		if !rules.program.HasChanged(name) && !b.rules.program.HasChanged(name) {
			if rules.times == nil {
				rules.times = make(map[string]*rundir.Times)
			}
			rules.times[name] = times
		}
	}
}

// putInPlace records the rules, then puts them in force, while no other process builds or records any. Whoever finds
// their ids also finds their texts: readers read these again when the file that names what is loaded is replaced. A
// start that finds the new source without the new rules loads them.
func (b *box) putInPlace(source Source, rules *compiled) (tables map[string]*rundir.TableRecord, err error) {
	err = b.dp.Alone(func() error {
		tables, err = b.putInPlaceAlone(source, rules)
		return err
	})
	return tables, err
}

// putInPlaceAlone returns the records of tables.
func (b *box) putInPlaceAlone(source Source, rules *compiled) (map[string]*rundir.TableRecord, error) {
	generation := b.dp.Generation()
	settling := b.settling(&source, rules)
	err := errors.Join(
		writeRules(b.cfg.Folder, rules),
		rundir.WriteJSON(b.cfg.Folder.Loaded(), b.loaded.Load()),
		b.recordSettling(&source, generation, settling),
	)
	tables := maps.Clone(b.tables)
	if err == nil {
		err = b.recordOthers(tables, &source, rules)
	}
	if err == nil && len(settling) > 0 {
		err = b.recordSource(&source, generation)
	}
	otherTunnels := !reflect.DeepEqual(b.rules.options.Tunnels(), rules.options.Tunnels())
	if err == nil && otherTunnels {
		err = b.blockTunnels(&source, rules)
	}
	if err == nil {
		options := ruleset.OptionsOf(&rules.options)
		err = b.dp.ReplaceRules(rules.program, &options)
	}
	if errors.Is(err, dataplane.ErrUnfinished) {
		b.cfg.Log.Warn("the new rules are in force, but something of the old ones is left; this is tried again each second", "error", err)
		err = nil
	}
	if err != nil {
		if otherTunnels {
			b.unblockTunnels()
		}
		if len(settling) > 0 { // the records below are those of the source before
			err = errors.Join(err, b.recordSettling(&source, generation, settling))
		}
		return nil, errors.Join(err, b.recordAgain(tables), writeRules(b.cfg.Folder, b.rules), b.recordSource(&b.source, generation))
	}
	if otherTunnels {
		b.noteTunnels(&source, rules)
	}
	return tables, nil
}

// recordOthers makes the records of tables those of rules that come into force: it removes those of
// tables that lose what commands have put into them, and writes those of tables that get what the store
// or a rollback has of them. All others stay. records are those of the rules in force, and are changed.
// The source that they belong to is recorded already, with these tables as settling: a start after a kill
// loads that source, and does not believe their records.
func (b *box) recordOthers(records map[string]*rundir.TableRecord, source *Source, rules *compiled) error {
	folder := b.cfg.Folder.TablesOf(b.dp.Generation())
	for _, name := range b.settling(source, rules) {
		if !rules.program.HasChanged(name) {
			if err := b.tables[name].Remove(); err != nil {
				return fmt.Errorf("remove the record of a table: %w", err)
			}
			delete(records, name)
			continue
		}
		if err := killpoint.MkdirAll(folder); err != nil {
			return fmt.Errorf("make a folder for records of tables: %w", err)
		}
		record, err := rundir.WriteTable(folder, name, b.tableOf(rules, name, rules.program.EntriesOf(name)))
		if err != nil {
			return err
		}
		records[name] = record
	}
	return nil
}

// settling returns the tables whose records change with the rules.
func (b *box) settling(source *Source, rules *compiled) (names []string) {
	for name := range b.tables {
		if !rules.program.HasChanged(name) {
			names = append(names, name)
		}
	}
	for _, name := range rules.program.ChangedNames() {
		if b.tables[name] == nil || source.tables[name] != nil {
			names = append(names, name)
		}
	}
	return names
}

// recordAgain takes recordOthers back, which has left these records.
func (b *box) recordAgain(left map[string]*rundir.TableRecord) error {
	var errs []error
	for name, record := range left {
		if b.tables[name] == nil {
			errs = append(errs, record.Remove())
		}
	}
	folder := b.cfg.Folder.TablesOf(b.dp.Generation())
	for name, record := range b.tables {
		if left[name] == record {
			continue
		}
		again, err := rundir.WriteTable(folder, name, b.tableOf(b.rules, name, b.rules.program.EntriesOf(name)))
		if errs = append(errs, err); err == nil {
			b.tables[name] = again
		}
	}
	return errors.Join(errs...)
}

// finishRules tries again to remove what is left of rules that were replaced.
func (b *box) finishRules() {
	if b.dp == nil || !b.dp.Unfinished() {
		return
	}
	if err := b.dp.Finish(); err == nil {
		b.cfg.Log.Info("what was left of the rules before is removed")
	}
}

// recordedInPlace returns the record of rules that replace others in place, by index.
func recordedInPlace(before []rundir.RuleText, rules *compiled) []rundir.RuleText {
	recorded := slices.Clone(before)
	for i := range recorded {
		recorded[i].Gone = true
	}
	recorded = append(recorded, make([]rundir.RuleText, len(rules.program.Rules)-len(recorded))...)
	for number, index := range rules.program.Order {
		recorded[index] = rules.texts[number]
	}
	return recorded
}
