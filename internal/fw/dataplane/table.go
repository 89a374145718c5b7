package dataplane

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"sync/atomic"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
	"weir/internal/killpoint"
)

// Names of the maps that outlive a reload. The section of the programs' only global
// variable is a map too.
const (
	mapPrefetchDevices   = "prefetch_devices" // of the generation
	mapPrefetches        = "prefetches"       // of the generation
	mapShared            = ".bss"
	mapStates            = "states"
	mapHints             = "hints"
	mapExtras            = "extras"
	mapTuples            = "tuples"
	mapSpilled           = "spilled_tuples"
	mapNexthopIndex      = "nexthop_index"
	mapNexthopsFree      = "nexthops_free"
	mapInterfaceCounters = "interface_counters"
	mapPathCounters      = "path_counters"
	mapPaths             = "paths"
	mapAddresses         = "addresses"
	mapFragments         = "fragments"
	mapHandoffs          = "handoffs"
	mapTableCounters     = "table_counters"
	mapTableLengths      = "table_lengths"
	mapTableRules        = "table_rules"
	mapLimits            = "limits"
	mapSources           = "sources"
	mapSourceIndex       = "source_index"
	mapEndpoints         = "endpoints"
	mapLimiters          = "limiters"
	mapLimited           = "limited"
	mapPoolLoads         = "pool_loads"
	mapPoolUses          = "pool_uses"
	mapNormals           = "normals"
	mapLogRing           = "log_ring"
	mapCaptureRing       = "capture_ring"
	mapRecordsLost       = "records_lost"
	mapEarlyFragments    = "early_fragments"
	mapRejectSources     = "reject_sources"
	mapBroadcasts        = "broadcasts"
	mapRejectCounters    = "reject_counters"
	mapCaptureFilters    = "capture_filters"
	mapPolicies          = "policies"
)

var keptMaps = []string{
	mapShared, mapStates, mapHints, mapExtras, mapTuples, mapSpilled, mapNexthopIndex, mapNexthopsFree,
	mapInterfaceCounters, mapPathCounters, mapPaths, mapAddresses, mapFragments, mapHandoffs,
	mapLogRing, mapCaptureRing, mapRecordsLost, mapEarlyFragments,
	mapRejectSources, mapBroadcasts, mapRejectCounters,
	mapCaptureFilters, mapTableCounters, mapTableLengths, mapTableRules,
	mapLimits, mapSources, mapSourceIndex, mapEndpoints, mapLimiters, mapLimited, mapPoolLoads, mapPoolUses, mapNormals,
	mapPolicies,
}

// tables holds the maps that outlive a reload, and their mapped memory.
type tables struct {
	maps     map[string]*bpfload.Map
	shared   *xdpShared
	states   []xdpState // [0] is unused
	hints    []xdpHints
	extras   []xdpExtra   // by index of the state
	buckets  []xdpBucket  // of the tuple table
	limits   []xdpLimit   // by number; [0] is unused
	sources  []xdpSource  // [0] is unused
	limited  []xdpLimited // by index of the state: its limiters
	limiters []xdpLimiter // state limiters by id, then source limiters
	memory   []*bpfload.Memory

	policiesRest bool // no program searches the IPsec policies that are not in force
}

// pinName returns a map's name in the bpffs, which allows no dots.
func pinName(name string) string {
	switch name {
	case mapShared:
		return "shared"
	case mapQueueData:
		return "queue_data"
	}
	return name
}

// openTables opens the tables pinned in dir. The error wraps fs.ErrNotExist if there are
// none, and ErrLayout if they are another version's.
func openTables(dir string) (_ *tables, err error) {
	t := &tables{maps: make(map[string]*bpfload.Map, len(keptMaps))}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	for _, name := range keptMaps {
		m, err := bpfload.OpenMap(filepath.Join(dir, pinName(name)))
		if isMissing(err) && len(t.maps) > 0 {
			return nil, fmt.Errorf("there is no map %s: %w", name, ErrLayout)
		}
		if err != nil {
			return nil, err
		}
		t.maps[name] = m
	}
	return t, t.mapMemory()
}

// takeTables returns tables made of freshly loaded maps. They share the descriptors.
func takeTables(loaded map[string]*bpfload.Map) (_ *tables, err error) {
	t := &tables{maps: make(map[string]*bpfload.Map, len(keptMaps)), policiesRest: true}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	for _, name := range keptMaps {
		if loaded[name] == nil {
			return nil, fmt.Errorf("the objects have no map %s", name)
		}
		if t.maps[name], err = loaded[name].Clone(); err != nil {
			return nil, fmt.Errorf("keep map %s: %w", name, err)
		}
	}
	return t, t.mapMemory()
}

func (t *tables) mapMemory() error {
	for name, m := range t.maps {
		if err := checkLayout(name, m); err != nil {
			return err
		}
	}
	shared, err := mapValues[xdpShared](t, mapShared)
	if err != nil {
		return err
	}
	t.shared = &shared[0]
	if t.states, err = mapValues[xdpState](t, mapStates); err != nil {
		return err
	}
	if t.hints, err = mapValues[xdpHints](t, mapHints); err != nil {
		return err
	}
	if t.extras, err = mapValues[xdpExtra](t, mapExtras); err != nil {
		return err
	}
	if t.limits, err = mapValues[xdpLimit](t, mapLimits); err != nil {
		return err
	}
	if t.sources, err = mapValues[xdpSource](t, mapSources); err != nil {
		return err
	}
	if t.limiters, err = mapValues[xdpLimiter](t, mapLimiters); err != nil {
		return err
	}
	if t.limited, err = mapValues[xdpLimited](t, mapLimited); err != nil {
		return err
	}
	t.buckets, err = mapValues[xdpBucket](t, mapTuples)
	return err
}

func mapValues[T any](t *tables, name string) ([]T, error) {
	memory, err := bpfload.MapMemory(t.maps[name])
	if err != nil {
		return nil, err
	}
	t.memory = append(t.memory, memory)
	return bpfload.Values[T](memory)
}

// pin makes dir and pins the tables there.
func (t *tables) pin(dir string) error {
	if err := killpoint.Mkdir(dir); err != nil {
		return fmt.Errorf("make a folder for pins: %w", err)
	}
	for name, m := range t.maps {
		if err := bpfload.PinMap(m, filepath.Join(dir, pinName(name))); err != nil {
			return err
		}
	}
	return nil
}

func (t *tables) close() error {
	var errs []error
	for _, m := range t.memory {
		errs = append(errs, m.Close())
	}
	for _, m := range t.maps {
		errs = append(errs, m.Close())
	}
	t.memory, t.shared, t.states, t.hints, t.extras, t.buckets, t.limits, t.sources, t.limiters, t.limited = nil, nil, nil, nil, nil, nil, nil, nil, nil, nil
	return errors.Join(errs...)
}

// limit returns the largest allowed number of states.
func (t *tables) limit() uint32 { return t.shared.Limit }

// maxPoolUses is how many states may count at addresses of pools with least-states.
const maxPoolUses = 1 << 20

// maxNormals is how many states scrub (reassemble tcp) may have passed. Beyond, none is made.
const maxNormals = 1 << 20

// tableSizes returns the sizes of the maps whose size depends on the limit of states.
func tableSizes(limit uint32) map[string]uint32 {
	return map[string]uint32{
		mapStates:   stateCapacity(limit) + 1,
		mapHints:    stateCapacity(limit)/hintsInLine + 1,
		mapExtras:   stateCapacity(limit) + 1,
		mapLimited:  stateCapacity(limit) + 1,
		mapTuples:   bucketCount(limit),
		mapSpilled:  spillSize(limit),
		mapPoolUses: min(stateCapacity(limit), maxPoolUses),
		mapNormals:  min(stateCapacity(limit), maxNormals),
	}
}

// sourceSizes returns the sizes of the maps whose size depends on how many sources there may be.
func sourceSizes(limit uint32) map[string]uint32 {
	return map[string]uint32{mapSources: sourceCapacity(limit) + 1, mapSourceIndex: sourceCapacity(limit)}
}

// tableSizes returns the sizes of all tables whose size depends on a limit. Tables that are
// kept may have room for more than the limit.
func (d *Dataplane) tableSizes() map[string]uint32 {
	sizes := tableSizes(d.config.Options.MaxStates)
	maps.Copy(sizes, sourceSizes(d.config.sourceRoom()))
	for name := range sizes {
		if d.kept {
			sizes[name] = d.tables.maps[name].MaxEntries()
		}
	}
	return sizes
}

// largestWaste is how many times too large tables may be: beyond, a load gives the memory
// back.
const largestWaste = 4

// fits reports whether the tables have room for what a configuration asks for, and not
// far more.
func (t *tables) fits(o *ruleset.Options, p *ruleset.Program) bool {
	inUse := atomic.LoadUint32(&t.shared.StatesMade) - atomic.LoadUint32(&t.shared.StatesReleased)
	if o.MaxStates < atomic.LoadUint32(&t.shared.Limit) && inUse > o.MaxStates {
		return false // adaptive timeouts would end them all: as many as are allowed are copied
	}
	within := func(room uint32, wanted uint32) bool { return wanted <= room && room/largestWaste <= wanted }
	limiters := p.LimiterEntries()
	return t.shared.LimiterRoom == limiters && t.keepsMasks(p) &&
		within(uint32(len(t.states)), stateCapacity(o.MaxStates)+1) && bucketCount(o.MaxStates) <= uint32(len(t.buckets)) &&
		within(uint32(len(t.sources)), sourceCapacity(o.MaxSources+limiters)+1)
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
