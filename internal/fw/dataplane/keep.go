package dataplane

import (
	"errors"
	"fmt"
	"slices"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/reason"
)

// copiedMaps are copied entry by entry if they cannot be kept.
var copiedMaps = []string{mapAddresses, mapRejectSources, mapBroadcasts, mapTableCounters, mapTableLengths, mapTableRules}

// ownMaps are made again with new tables, because they hold states or things that states
// refer to.
var ownMaps = []string{mapShared, mapStates, mapHints, mapExtras, mapTuples, mapSpilled, mapNexthopIndex, mapNexthopsFree, mapHandoffs, mapLimits, mapSources, mapSourceIndex, mapEndpoints, mapLimiters, mapLimited, mapPoolLoads, mapPoolUses, mapNormals, mapPolicies}

// keepable returns the maps of the old tables that a generation with new tables can use:
// those that have the same form in both.
func (d *Dataplane) keepable(specs []*bpfload.Spec) (map[string]*bpfload.Map, error) {
	kept := make(map[string]*bpfload.Map)
	for _, name := range keptMaps {
		m := d.old.maps[name]
		if m == nil || slices.Contains(ownMaps, name) || d.crowded && (name == mapPaths || name == mapPathCounters) {
			continue
		}
		if d.old.other {
			fits, err := d.fits(name, m, specs)
			if err != nil {
				return nil, err
			}
			if !fits {
				continue
			}
		}
		kept[name] = m
		d.keeps = append(d.keeps, name)
	}
	if !d.keepsPaths() { // numbers without their counters, or counters without their numbers
		for _, name := range []string{mapPaths, mapPathCounters} {
			delete(kept, name)
			d.keeps = slices.DeleteFunc(d.keeps, func(kept string) bool { return kept == name })
		}
	}
	return kept, nil
}

// fits reports whether a map of another layout has the form that this version's objects declare.
func (d *Dataplane) fits(name string, m *bpfload.Map, specs []*bpfload.Spec) (bool, error) {
	if name == mapInterfaceCounters && !sameReasons(d.old.layout) {
		return false, nil
	}
	spec := declared(specs, name)
	if spec == nil || spec.Compatible(m) != nil {
		return false, nil
	}
	if spec.Key == nil || spec.Value == nil { // a ring
		return true, nil
	}
	key, value, err := conversions(m, spec, renames(d.old.layout))
	if err != nil {
		return false, err
	}
	return key.Same() && value.Same(), nil
}

func declared(specs []*bpfload.Spec, name string) *bpfload.MapSpec {
	for _, spec := range specs {
		if m := spec.Maps[name]; m != nil {
			return m
		}
	}
	return nil
}

// conversions returns the conversions of a map's keys and values to the form that an
// object declares.
func conversions(m *bpfload.Map, spec *bpfload.MapSpec, renames bpfload.Renames) (key, value *bpfload.Conversion, err error) {
	fromKey, fromValue, err := bpfload.MapShapes(m)
	if err != nil {
		return nil, nil, err
	}
	toKey, toValue, err := bpfload.SpecShapes(spec)
	if err != nil {
		return nil, nil, err
	}
	if key, err = bpfload.NewConversion(fromKey, toKey, renames); err != nil {
		return nil, nil, err
	}
	value, err = bpfload.NewConversion(fromValue, toValue, renames)
	return key, value, err
}

// keepsPaths reports whether paths keep their numbers in the new tables.
func (d *Dataplane) keepsPaths() bool {
	return slices.Contains(d.keeps, mapPaths) && slices.Contains(d.keeps, mapPathCounters)
}

// copyMaps fills the maps that could not be kept. It does not copy pending fragments,
// unread records and captured packets. Counters of another form start from 0.
func (d *Dataplane) copyMaps() error {
	if !d.old.other {
		return nil
	}
	specs, err := loadSpecs()
	if err != nil {
		return err
	}
	for _, name := range copiedMaps {
		if slices.Contains(d.keeps, name) || d.old.maps[name] == nil {
			continue
		}
		key, value, err := conversions(d.old.maps[name], declared(specs, name), renames(d.old.layout))
		if err != nil {
			return err
		}
		if err := copyEntries(d.old.maps[name], d.tables.maps[name], key, value); err != nil {
			return err
		}
	}
	if !slices.Contains(d.keeps, mapCaptureFilters) {
		d.tables.shared.Recording = 0
	}
	if slices.Contains(d.keeps, mapInterfaceCounters) || d.old.maps[mapInterfaceCounters] == nil {
		return nil
	}
	before := d.old.layout
	return copyReasons(d.old.maps[mapInterfaceCounters], d.tables.maps[mapInterfaceCounters], reasonCount(before), uint32(reason.Count),
		func(number uint32) (uint32, bool) { return reasonNow(number, before) })
}

// copyEntries copies a hash map's entries.
func copyEntries(from, to *bpfload.Map, key, value *bpfload.Conversion) error {
	var k, v []byte
	entries := from.Iterate()
	for entries.Next(&k, &v) {
		newKey, newValue := make([]byte, to.KeySize()), make([]byte, to.ValueSize())
		if err := errors.Join(key.Convert(newKey, k), value.Convert(newValue, v)); err != nil {
			return fmt.Errorf("copy the entries of %s: %w", from, err)
		}
		if err := to.Put(newKey, newValue); err != nil {
			return fmt.Errorf("copy the entries of %s: %w", from, err)
		}
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("list the entries of %s: %w", from, err)
	}
	return nil
}

// copyReasons copies the counters of each interface. Both maps have one counter per
// interface and reason. number translates a reason's number.
func copyReasons(from, to *bpfload.Map, fromCount, toCount uint32, number func(uint32) (uint32, bool)) error {
	if from == nil || from.ValueSize() != to.ValueSize() {
		return nil
	}
	values, err := newPerCPU[xdpCounter]()
	if err != nil {
		return err
	}
	for slot := range uint32(MaxInterfaces + 1) {
		for r := range fromCount {
			other, known := number(r)
			if !known {
				continue
			}
			if err := from.Lookup(slot*fromCount+r, values); err != nil {
				return fmt.Errorf("read an interface's counters: %w", err)
			}
			if !slices.ContainsFunc(values, func(c xdpCounter) bool { return c.Packets != 0 }) {
				continue
			}
			if err := to.Put(slot*toCount+other, values); err != nil {
				return fmt.Errorf("copy an interface's counters: %w", err)
			}
		}
	}
	return nil
}

// newCounters returns the index of an interface's first counter in the new tables.
func (o *origin) newCounters(first uint32) uint32 {
	return first / reasonCount(o.layout) * uint32(reason.Count)
}
