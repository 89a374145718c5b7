package dataplane

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"weir/internal/fw/bpfload"
	"weir/internal/killpoint"
)

// newerTablesDir holds the pins of the tables in use while weir waits for an older
// version. The older version finds its own tables in their place. The name has this
// version's layout, because a version takes back only its own tables.
var newerTablesDir = fmt.Sprintf("newer_tables_%d", stateLayout)

// ErrNoLayout is returned (wrapped) for a layout that this version does not know.
var ErrNoLayout = errors.New("this version cannot make states of that layout")

// Layouts returns the earlier layouts that states can be converted to, the latest first.
func Layouts() []uint32 {
	known := slices.Collect(maps.Keys(pasts))
	slices.Sort(known)
	slices.Reverse(known)
	return known
}

func knownLayouts() string {
	var known []string
	for _, layout := range Layouts() {
		known = append(known, strconv.FormatUint(uint64(layout), 10))
	}
	return strings.Join(known, ", ")
}

// A Downgrade keeps a second set of tables, in an earlier layout, up to date until a
// version of weir with that layout has taken over.
type Downgrade struct {
	dir      string
	layout   uint32
	old      *origin
	objects  *bpfload.Objects
	copier   *copier
	importer *importer
	states   uint32 // id of the states map for the older version
	newer    uint32 // id of the states map in use
	// limitsInMemory says that the older version reads its limits from memory.
	limitsInMemory bool
	memory         []*bpfload.Memory
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
	if _, err := LiveGeneration(dir); errors.Is(err, ErrNotLoaded) {
		return nil, err // before a folder is made
	}
	return g, g.do(func() error {
		l, err := readLedger(dir)
		if isMissing(err) {
			return fmt.Errorf("%s: %w", dir, ErrNotLoaded)
		}
		if err != nil {
			return err
		}
		if l.Layout != stateLayout {
			return fmt.Errorf("%w (its states have layout %d): nothing to do", ErrLayout, l.Layout)
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

// Follow brings the copies up to date.
func (g *Downgrade) Follow() error {
	g.followPaths()
	for range 2 {
		if err := g.copier.run(); err != nil {
			return err
		}
	}
	return nil
}

// followPaths keeps the older version from giving away path numbers that the running
// programs use, or will use while both run. Both count under the same numbers.
func (g *Downgrade) followPaths() {
	from, to := &g.old.shared, &g.importer.shared
	high := min(atomic.LoadUint32(from.pathsHigh)+slack, maxPaths-reservedPaths-firstPath)
	for field, least := range map[*uint32]uint32{to.pathsHigh: high, to.pathsReserved: atomic.LoadUint32(from.pathsReserved)} {
		for {
			was := atomic.LoadUint32(field)
			if was >= least || atomic.CompareAndSwapUint32(field, was, least) {
				break
			}
		}
	}
}

// Count returns how many connections have a copy, and how many could not be copied.
func (g *Downgrade) Count() (copied, lost int) { return g.copier.count() }

// LostFields returns the fields of states that the older version does not know.
func (g *Downgrade) LostFields() []string { return g.importer.back.Dropped() }

// Offer puts the older tables in the place of those in use, so that an older version
// finds them when it starts. The running programs continue with theirs.
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
	for _, name := range keptMapsOf(g.layout) {
		former := formerMap(name, g.layout)
		if err := bpfload.PinMap(g.importer.maps[former], filepath.Join(dir, pinName(former))); err != nil {
			return err
		}
	}
	return nil
}

// ErrTakenBack is returned (wrapped) if the offered tables are gone: this version has
// loaded rules, or started, since.
var ErrTakenBack = errors.New("what was offered to an older version was taken back by another start or load")

// A Takeover says what the older version does with the offered tables.
type Takeover int

// Nobody has taken over, or the older version uses the offered tables, or it has copied
// them into tables of its own, as it does if its rules have another limit of states.
const (
	TakenByNobody Takeover = iota
	TakenInUse
	TakenAsCopy
)

// Takeover reports whether the older version has taken over on every interface. Then
// there is nothing left to follow.
func (g *Downgrade) Takeover() (Takeover, error) {
	return bpfload.From(bpfload.At(""), func() (Takeover, error) {
		l, err := readLedger(g.dir)
		if isMissing(err) || err == nil && l.Layout == stateLayout {
			return TakenByNobody, ErrTakenBack
		}
		if err != nil && !errors.Is(err, ErrLayout) {
			return TakenByNobody, err
		}
		used, err := usedMaps(g.dir)
		switch {
		case err != nil || len(used) == 0 || used[g.newer]:
			return TakenByNobody, err
		case used[g.states]:
			return TakenInUse, nil
		}
		return TakenAsCopy, nil
	})
}

// Limit returns the limit of states. If the older version's rules have the same, it uses
// the offered tables and does not copy them.
func (g *Downgrade) Limit() uint32 { return atomic.LoadUint32(g.old.shared.limit) }

// IsBeingTaken reports whether the older version is replacing the programs now. A
// connection that begins meanwhile must be copied before it copies the offered tables.
func (g *Downgrade) IsBeingTaken() bool {
	_, err := bpfload.From(bpfload.At(""), func() (os.FileInfo, error) {
		return os.Stat(filepath.Join(g.dir, nextGenerationDir))
	})
	return err == nil
}

// Finish copies what is left and removes the tables that were in use.
func (g *Downgrade) Finish() error {
	g.importer.alone, g.copier.retries = false, false
	return errors.Join(g.Follow(), bpfload.At("").Do(func() error {
		return removeAll(g.dir, newerTablesDir)
	}))
}

// Withdraw puts the tables in use back in their place.
func (g *Downgrade) Withdraw() error { return g.do(func() error { return nil }) }

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

// undoDowngrade ends an unfinished Downgrade. The caller holds the folder's lock. If
// programs use the offered tables, the older version has begun to take over, and those
// tables are in force. Otherwise no packet has used them.
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

// usedMaps returns the maps that the programs of the folder's links use, by id.
func usedMaps(dir string) (map[uint32]bool, error) {
	return withLinks(bpfload.At(""), dir, func(links map[linkKey]*pinnedLink) (map[uint32]bool, error) {
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
	})
}
