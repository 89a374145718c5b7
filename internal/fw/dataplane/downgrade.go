package dataplane

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"unsafe"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/reason"
	"weir/internal/killpoint"
)

// newerTablesDir has the pins of the tables in use while an older version is waited
// for, which finds its own in their place.
const newerTablesDir = "newer_tables"

// formerObjects has the garbage collection's object of each earlier layout: its maps and their BTF, and
// the program that imports a state into them.
//
//go:embed layouts/*.o
var formerObjects embed.FS

// formerObject reads one; tests have another.
var formerObject = func(layout uint32) ([]byte, error) {
	return formerObjects.ReadFile(fmt.Sprintf("layouts/%d.o", layout))
}

// ErrNoLayout is returned (wrapped) for a layout that this version knows nothing of.
var ErrNoLayout = errors.New("this version knows no such layout")

// Layouts are the earlier layouts that states can be given to, the latest first.
func Layouts() []uint32 {
	known := slices.Collect(maps.Keys(pasts))
	slices.Sort(known)
	slices.Reverse(known)
	return known
}

// A Downgrade keeps a second set of tables up to date, in an earlier layout, until a
// version of weir with that layout has taken over.
type Downgrade struct {
	dir     string
	layout  uint32
	old     *origin
	objects *bpfload.Objects
	copier  *copier
	intake  *intake
	states  uint32 // id of the map of states that the older version is to use
	newer   uint32 // id of that in use
	memory  []*bpfload.Memory
}

// BeginDowngrade makes tables of an earlier layout and copies the states of the folder
// into them. The caller closes the Downgrade.
func BeginDowngrade(dir string, layout uint32) (_ *Downgrade, err error) {
	g := &Downgrade{dir: dir, layout: layout}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	return g, g.do(func() error {
		l, err := readLedger(dir)
		if isMissing(err) {
			return fmt.Errorf("%s: %w", dir, ErrNotLoaded)
		}
		if err != nil {
			return err
		}
		if l.Layout != stateLayout {
			return fmt.Errorf("the tables in use have layout %d: %w", l.Layout, ErrLayout)
		}
		if g.old, err = openOrigin(filepath.Join(dir, tablesDir), stateLayout); err != nil {
			return err
		}
		if err := g.makeTables(l.HashSeed); err != nil {
			return err
		}
		return g.Follow()
	})
}

// do calls f with the folder locked.
func (g *Downgrade) do(f func() error) error {
	return bpfload.At("").Do(func() error {
		lock, err := lockFolder(g.dir, true)
		if err != nil {
			return err
		}
		defer lock.Close()
		if err := repair(g.dir); err != nil {
			return err
		}
		return f()
	})
}

// makeTables makes the tables that the states are copied into.
func (g *Downgrade) makeTables(seed uint64) error {
	object, err := formerObject(g.layout)
	if err != nil {
		return fmt.Errorf("layout %d: %w", g.layout, ErrNoLayout)
	}
	spec, err := bpfload.ReadSpec(bytes.NewReader(object))
	if err != nil {
		return err
	}
	limit := atomic.LoadUint32(g.old.shared.limit)
	program, argument := importer(g.layout)
	kept, err := g.keepable(spec)
	if err != nil {
		return err
	}
	values := map[string]any{
		"hash_keys": newHashKeys(seed), "bucket_mask": bucketCount(limit) - 1,
		"max_states": limit, "state_capacity": stateCapacity(limit), "state_slots": stateCapacity(limit),
	}
	entries := make(map[string]uint32)
	for name, n := range tableSizes(limit) {
		entries[formerMap(name, g.layout)] = n
	}
	maps.DeleteFunc(values, func(name string, _ any) bool { return spec.Variables[name] == nil })
	g.objects, err = bpfload.Load([]*bpfload.Spec{spec}, bpfload.Options{
		Maps: kept, Entries: entries, Values: values, Shared: []string{mapShared}, Programs: []string{program},
	})
	if err != nil {
		return err
	}
	g.intake = &intake{maps: maps.Clone(g.objects.Maps), importer: g.objects.Programs[program]}
	if g.intake.form, err = readImportForm(spec, argument); err != nil {
		return err
	}
	return g.makeIntake(spec, kept)
}

// keepable are the maps in use that the older version can use as they are.
func (g *Downgrade) keepable(spec *bpfload.Spec) (map[string]*bpfload.Map, error) {
	kept := make(map[string]*bpfload.Map)
	for _, name := range keptMaps {
		m, declared := g.old.maps[name], spec.Maps[formerMap(name, g.layout)]
		if slices.Contains(ownMaps, name) || name == mapInterfaceCounters && !sameReasons(g.layout) {
			continue
		}
		fits := declared == nil // the object knows no rings: they are what they were
		if !fits && declared.Compatible(m) == nil {
			key, value, err := conversions(m, declared, formerRenames(g.layout))
			if err != nil {
				return nil, err
			}
			fits = key.Same() && value.Same()
		}
		if fits {
			kept[formerMap(name, g.layout)] = m
		}
	}
	return kept, nil
}

func (g *Downgrade) makeIntake(spec *bpfload.Spec, kept map[string]*bpfload.Map) error {
	in := g.intake
	maps.Copy(in.maps, kept)
	_, shape, err := bpfload.MapShapes(in.maps[mapStates])
	if err != nil {
		return err
	}
	ours, err := ourShape(mapStates)
	if err != nil {
		return err
	}
	memory, err := bpfload.MapMemory(in.maps[mapStates])
	if err != nil {
		return err
	}
	g.memory = append(g.memory, memory)
	if in.states, err = newRawStates(memory, shape, g.layout); err != nil {
		return err
	}
	if in.back, err = bpfload.NewConversion(ours, shape, formerRenames(g.layout)); err != nil {
		return err
	}
	if g.states, err = bpfload.ID(in.maps[mapStates]); err != nil {
		return err
	}
	if g.newer, err = bpfload.ID(g.old.maps[mapStates]); err != nil {
		return err
	}
	if err := g.fillShared(); err != nil {
		return err
	}
	if err := g.copyMaps(spec, kept); err != nil {
		return err
	}
	g.copier = newCopier(g.old, in)
	return nil
}

// readImportForm finds the fields of an older struct import.
func readImportForm(spec *bpfload.Spec, argument string) (importForm, error) {
	form := importForm{owner: -1, find: -1}
	shape, err := bpfload.TypeShape(spec, argument)
	if err != nil {
		return form, err
	}
	form.size = shape.Size()
	for name, at := range map[string]*int{"state": &form.state, "index": &form.index, "owner": &form.owner, "find": &form.find} {
		offset, _, err := shape.Field(name)
		switch {
		case err == nil:
			*at = offset
		case *at >= 0:
			return form, err
		}
	}
	return form, nil
}

// made are the fields of struct shared that belong to states, next hops and the garbage collection:
// they begin anew.
var made = []string{
	"gc_state", "states", "bumped", "gc_nexthop", "gc_nexthop_at", "gc_unlisted", "gc_lock", "prefetch",
	"states_made", "states_released", "nexthops_high", "nexthops_unused", "nexthops", "hinted",
}

// fillShared writes what outlives a generation.
func (g *Downgrade) fillShared() error {
	memory, err := bpfload.MapMemory(g.intake.maps[mapShared])
	if err != nil {
		return err
	}
	g.memory = append(g.memory, memory)
	_, shape, err := bpfload.MapShapes(g.intake.maps[mapShared])
	if err != nil {
		return err
	}
	ours, err := ourShape(mapShared)
	if err != nil {
		return err
	}
	convert, err := bpfload.NewConversion(ours, shape, formerRenames(g.layout))
	if err != nil {
		return err
	}
	value := slices.Clone(g.old.all)
	shared := (*xdpShared)(unsafe.Pointer(unsafe.SliceData(value)))
	for i := range MaxIfindex {
		raw := (*xdpInterface)(&shared.Interfaces[i])
		raw.Counters = raw.Counters / uint32(reason.Count) * reasonCount(g.layout)
		raw.change(0, interfaceDevmap|interfacePrefetch)
	}
	if err := convert.Convert(memory.Bytes(), value); err != nil {
		return fmt.Errorf("convert what all packets read: %w", err)
	}
	for _, name := range made {
		at, field, err := shape.Field(formerName("shared", name, g.layout))
		if err != nil {
			continue // the older version has none
		}
		clear(memory.Bytes()[at : at+field.Size()])
	}
	return nil
}

// copyMaps fills the maps that the older version needs of its own.
func (g *Downgrade) copyMaps(spec *bpfload.Spec, kept map[string]*bpfload.Map) error {
	for _, name := range copiedMaps {
		former := formerMap(name, g.layout)
		if kept[former] != nil || spec.Maps[former] == nil {
			continue
		}
		key, value, err := conversions(g.old.maps[name], spec.Maps[former], formerRenames(g.layout))
		if err != nil {
			return err
		}
		if err := copyEntries(g.old.maps[name], g.intake.maps[former], key, value); err != nil {
			return err
		}
	}
	if former := formerMap(mapInterfaceCounters, g.layout); kept[former] == nil {
		return copyReasons(g.old.maps[mapInterfaceCounters], g.intake.maps[former], uint32(reason.Count), reasonCount(g.layout),
			func(now uint32) (uint32, bool) { return reasonThen(now, g.layout) })
	}
	return nil
}

// Follow brings the copies up to date.
func (g *Downgrade) Follow() error {
	for range 2 {
		if err := g.copier.run(); err != nil {
			return err
		}
	}
	return nil
}

// Copied and Lost are how many states were copied, and could not be.
func (g *Downgrade) Copied() int { return g.copier.copied }

// Lost is how many states could not be copied.
func (g *Downgrade) Lost() int { return g.copier.lost }

// Forgets are the fields of states that the older version does not know.
func (g *Downgrade) Forgets() []string { return g.intake.back.Left() }

// Offer puts the older tables in the place of those in use: a version of weir that starts
// finds them. The running programs go on over theirs.
func (g *Downgrade) Offer() error {
	return g.do(func() error {
		next, live, newer := filepath.Join(g.dir, nextTablesDir), filepath.Join(g.dir, tablesDir), filepath.Join(g.dir, newerTablesDir)
		if err := g.pin(next); err != nil {
			return errors.Join(err, removeAll(g.dir, nextTablesDir))
		}
		l, err := readLedger(g.dir)
		if err != nil {
			return err
		}
		if err := killpoint.Rename(live, newer); err != nil {
			return fmt.Errorf("put the tables in use aside: %w", err)
		}
		l.Layout = g.layout
		if err := writeLedger(g.dir, l); err != nil {
			return err
		}
		if err := killpoint.Rename(next, live); err != nil {
			return fmt.Errorf("offer the older tables: %w", err)
		}
		return nil
	})
}

func (g *Downgrade) pin(dir string) error {
	if err := removeAll(g.dir, nextTablesDir); err != nil {
		return err
	}
	if err := killpoint.Mkdir(dir); err != nil {
		return fmt.Errorf("make a folder for pins: %w", err)
	}
	for _, name := range keptMaps {
		former := formerMap(name, g.layout)
		if err := bpfload.PinMap(g.intake.maps[former], filepath.Join(dir, pinName(former))); err != nil {
			return err
		}
	}
	return nil
}

// ErrTakenBack is returned (wrapped) where the tables that were offered are gone: this
// version has loaded rules, or started, since.
var ErrTakenBack = errors.New("what was offered to an older version was taken back by another start or load")

// Taken reports whether the older version has taken over on every interface. Then
// nothing is left to follow.
func (g *Downgrade) Taken() (taken bool, err error) {
	err = bpfload.At("").Do(func() error {
		id, err := bpfload.MapID(filepath.Join(g.dir, tablesDir, pinName(formerMap(mapStates, g.layout))))
		if isMissing(err) || err == nil && id != g.states {
			return ErrTakenBack
		}
		if err != nil {
			return err
		}
		used, err := usedMaps(g.dir)
		taken = used[g.states] && !used[g.newer]
		return err
	})
	return taken, err
}

// Finish copies what is left and forgets the tables that were in use.
func (g *Downgrade) Finish() error {
	return errors.Join(g.Follow(), bpfload.At("").Do(func() error {
		return removeAll(g.dir, newerTablesDir)
	}))
}

// TakeBack puts the tables in use back in their place.
func (g *Downgrade) TakeBack() error { return g.do(func() error { return nil }) }

// Close releases what the process holds.
func (g *Downgrade) Close() error {
	var errs []error
	for _, m := range g.memory {
		errs = append(errs, m.Close())
	}
	if g.old != nil {
		errs = append(errs, g.old.close())
	}
	if g.objects != nil {
		errs = append(errs, g.objects.Close())
	}
	g.memory, g.old, g.objects = nil, nil, nil
	return errors.Join(errs...)
}

// undoDowngrade ends a Downgrade that nobody has finished: a lock of the folder is held.
// Where programs use the offered tables the older version has begun to take over, and
// they are in force; else no packet has used them.
func undoDowngrade(dir string) error {
	newer, live := filepath.Join(dir, newerTablesDir), filepath.Join(dir, tablesDir)
	if _, err := os.Stat(newer); isMissing(err) {
		return nil
	}
	offered, err := bpfload.MapID(filepath.Join(live, mapStates))
	if err != nil && !isMissing(err) {
		return err
	}
	used, err := usedMaps(dir)
	if err != nil {
		return err
	}
	if used[offered] {
		return removeAll(dir, newerTablesDir)
	}
	if err := removeAll(dir, tablesDir); err != nil {
		return err
	}
	l, err := readLedger(dir)
	if err != nil {
		return err
	}
	l.Layout = stateLayout
	if err := writeLedger(dir, l); err != nil {
		return err
	}
	if err := killpoint.Rename(newer, live); err != nil {
		return fmt.Errorf("put the tables in use back: %w", err)
	}
	return nil
}

// usedMaps are the maps that the programs of the folder's links use, by id.
func usedMaps(dir string) (map[uint32]bool, error) {
	links, err := openLinks(dir)
	if err != nil {
		return nil, err
	}
	defer closeLinks(links)
	used := make(map[uint32]bool)
	for _, l := range links {
		ids, err := l.link.MapIDs()
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			used[id] = true
		}
	}
	return used, nil
}
