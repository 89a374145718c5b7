package dataplane

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"unsafe"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/reason"
)

// formerObjects holds the garbage collection's object of each earlier layout: its maps
// with their BTF, the program that imports a state into them, and the garbage collection.
//
//go:embed layouts/*.o
var formerObjects embed.FS

// formerObject reads one of them. Tests replace it.
var formerObject = func(layout uint32) ([]byte, error) {
	return formerObjects.ReadFile(fmt.Sprintf("layouts/%d.o", layout))
}

// makeTables makes the tables that the states are copied into.
func (g *Downgrade) makeTables(seed uint64) error {
	object, err := formerObject(g.layout)
	if err != nil {
		return fmt.Errorf("layout %d: %w; it can make those of layout %s", g.layout, ErrNoLayout, knownLayouts())
	}
	spec, err := bpfload.ReadSpec(bytes.NewReader(object))
	if err != nil {
		return err
	}
	g.declareValues(spec)
	limit, sources := g.Limit(), g.sourceLimit()
	program, argument := importProgram(g.layout)
	gc := gcProgram(g.layout)
	kept, err := g.keepable(spec)
	if err != nil {
		return err
	}
	values := map[string]any{
		"hash_keys": newHashKeys(seed), "bucket_mask": bucketCount(limit) - 1,
		// States that have ended still count until they are collected.
		"max_states": stateCapacity(limit), "state_capacity": stateCapacity(limit), "state_slots": stateCapacity(limit),
		"max_sources": sourceCapacity(sources), "source_capacity": sourceCapacity(sources),
	}
	sizes := tableSizes(limit)
	maps.Copy(sizes, sourceSizes(sources))
	entries := make(map[string]uint32)
	for name, n := range sizes {
		if spec.Maps[formerMap(name, g.layout)] != nil {
			entries[formerMap(name, g.layout)] = n
		}
	}
	g.limitsInMemory = spec.Variables["max_states"] == nil
	maps.DeleteFunc(values, func(name string, _ any) bool { return spec.Variables[name] == nil })
	g.objects, err = bpfload.Load([]*bpfload.Spec{spec}, bpfload.Options{
		Maps: kept, Entries: entries, Values: values, Shared: []string{mapShared}, Programs: []string{program, gc},
	})
	if err != nil {
		return err
	}
	g.importer = &importer{maps: maps.Clone(g.objects.Maps), program: g.objects.Programs[program], alone: true}
	if g.importer.form, err = readImportForm(spec, argument); err != nil {
		return err
	}
	if err := g.makeIntake(spec, kept); err != nil {
		return err
	}
	return g.startGC(g.objects.Programs[gc])
}

// declareValues declares the maps whose values had another size in that layout, or which had
// other reasons, if its object does not.
func (g *Downgrade) declareValues(spec *bpfload.Spec) {
	for name, size := range pasts[g.layout].values {
		declared := bpfload.SpecOf(g.old.maps[name])
		declared.Name, declared.ValueSize = formerMap(name, g.layout), size
		spec.Maps[declared.Name] = declared
	}
	if name := formerMap(mapInterfaceCounters, g.layout); !sameReasons(g.layout) && spec.Maps[name] == nil {
		declared := bpfload.SpecOf(g.old.maps[mapInterfaceCounters])
		declared.Name, declared.MaxEntries = name, (MaxInterfaces+1)*reasonCount(g.layout)
		spec.Maps[name] = declared
	}
}

// startGC arms the older garbage collection. It releases the states whose connections
// have ended. Otherwise they would keep their room and their tuples for as long as weir
// waits. It ends with the Downgrade. The older version starts its own.
func (g *Downgrade) startGC(program *bpfload.Program) error {
	err := armed(func() (uint32, error) { return bpfload.RunSyscall(program, nil) })
	if err != nil {
		return fmt.Errorf("start the garbage collection of layout %d: %w", g.layout, err)
	}
	return nil
}

// keepable returns the maps in use that the older version can use unchanged.
func (g *Downgrade) keepable(spec *bpfload.Spec) (map[string]*bpfload.Map, error) {
	kept := make(map[string]*bpfload.Map)
	for _, name := range keptMapsOf(g.layout) {
		m, declared := g.old.maps[name], spec.Maps[formerMap(name, g.layout)]
		if slices.Contains(ownMaps, name) || name == mapInterfaceCounters && !sameReasons(g.layout) {
			continue
		}
		fits := declared == nil // the object declares only what its programs use: the others have not changed
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
	in := g.importer
	maps.Copy(in.maps, kept)
	shape, err := g.formOf(mapStates, in.maps[mapStates], &in.back)
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
	if g.states, err = bpfload.ID(in.maps[mapStates]); err != nil {
		return err
	}
	if g.newer, err = bpfload.ID(g.old.maps[mapStates]); err != nil {
		return err
	}
	if err := g.fillShared(); err != nil {
		return err
	}
	if err := g.fillLimits(); err != nil {
		return err
	}
	if err := g.copyMaps(spec, kept); err != nil {
		return err
	}
	g.copier = newCopier(g.old, in)
	g.copier.retries, g.copier.older = true, true
	return nil
}

// formOf returns the form of the values of a map, and how ours become such.
func (g *Downgrade) formOf(name string, m *bpfload.Map, convert **bpfload.Conversion) (*bpfload.Shape, error) {
	_, shape, err := bpfload.MapShapes(m)
	if err != nil {
		return nil, err
	}
	ours, err := ourShape(name)
	if err != nil {
		return nil, err
	}
	*convert, err = bpfload.NewConversion(ours, shape, formerRenames(g.layout))
	return shape, err
}

// readImportForm finds the fields of an older struct import.
func readImportForm(spec *bpfload.Spec, argument string) (importForm, error) {
	form := importForm{owner: -1, find: -1, extra: -1, hop: -1, limiters: -1, use: -1, normal: -1}
	shape, err := bpfload.TypeShape(spec, argument)
	if err != nil {
		return form, err
	}
	form.size = shape.Size()
	for name, at := range map[string]*int{"state": &form.state, "index": &form.index, "owner": &form.owner, "find": &form.find, "hop": &form.hop} {
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

// made lists the fields of struct shared that belong to states, next hops and the garbage
// collection. They start afresh.
var made = []string{
	"gc_state", "states", "bumped", "gc_nexthop", "gc_nexthop_at", "gc_unlisted", "gc_lock", "prefetch",
	"states_made", "states_released", "nexthops_high", "nexthops_unused", "nexthops", "hinted", "sources",
}

// sourceLimit returns the limit of sources. The older version uses the offered tables only
// if its rules have the same.
func (g *Downgrade) sourceLimit() uint32 {
	return (*xdpShared)(unsafe.Pointer(unsafe.SliceData(g.old.all))).SourceLimit
}

// fillShared writes the fields that outlive a generation.
func (g *Downgrade) fillShared() error {
	memory, err := bpfload.MapMemory(g.importer.maps[mapShared])
	if err != nil {
		return err
	}
	g.memory = append(g.memory, memory)
	var convert *bpfload.Conversion
	shape, err := g.formOf(mapShared, g.importer.maps[mapShared], &convert)
	if err != nil {
		return err
	}
	value := slices.Clone(g.old.all)
	shared := (*xdpShared)(unsafe.Pointer(unsafe.SliceData(value)))
	neverExpire(shared)
	if g.limitsInMemory { // as above; the older version sets its own when it has taken over
		shared.Limit, shared.SourceLimit = stateCapacity(shared.Limit), sourceCapacity(shared.SourceLimit)
	}
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
	for name, field := range map[string]**uint32{"paths_high": &g.importer.shared.pathsHigh, "paths_reserved": &g.importer.shared.pathsReserved} {
		at, _, err := shape.Field(formerName("shared", name, g.layout))
		if err != nil {
			return err
		}
		*field = word(memory.Bytes(), at)
	}
	return nil
}

// fillLimits copies the limits of rules, with their numbers. The copied states count under
// them again.
func (g *Downgrade) fillLimits() error {
	m := g.importer.maps[formerMap(mapLimits, g.layout)]
	if m == nil { // a version that had none
		return nil
	}
	var convert *bpfload.Conversion
	if _, err := g.formOf(mapLimits, m, &convert); err != nil {
		return err
	}
	from, err := bpfload.MapMemory(g.old.maps[mapLimits])
	if err != nil {
		return err
	}
	to, err := bpfload.MapMemory(m)
	if err != nil {
		return errors.Join(err, from.Close())
	}
	g.memory = append(g.memory, from, to)
	limits, err := bpfload.Values[xdpLimit](from)
	if err != nil {
		return err
	}
	for number := 1; number < min(len(limits), to.Count()); number++ {
		l := limits[number]
		l.States, l.Nodes = 0, 0
		if err := convert.Convert(to.Bytes()[number*to.Stride():][:m.ValueSize()], bytesOf(unsafe.Slice(&l, 1))); err != nil {
			return fmt.Errorf("copy the limits of rules: %w", err)
		}
	}
	return nil
}

// neverExpire sets timeouts that no state reaches. A copy ends when its state does. It may
// be older than the state by a pause between two runs of the copier, and must not expire
// in between. The older version sets its own timeouts when it has taken over.
func neverExpire(s *xdpShared) {
	for phase := range s.TimeoutSet {
		s.Timeout[phase], s.TimeoutSet[phase] = math.MaxInt32/2, math.MaxInt32/2
	}
	s.AdaptiveStart, s.AdaptiveEnd = 0, 0
}

// copyMaps fills the maps that the older version has for itself.
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
		if err := copyEntries(g.old.maps[name], g.importer.maps[former], key, value); err != nil {
			return err
		}
	}
	if former := formerMap(mapInterfaceCounters, g.layout); kept[former] == nil {
		return copyReasons(g.old.maps[mapInterfaceCounters], g.importer.maps[former], uint32(reason.Count), reasonCount(g.layout),
			func(now uint32) (uint32, bool) { return reasonThen(now, g.layout) })
	}
	return nil
}
