package dataplane

import (
	"errors"
	"os"
	"slices"

	"weir/internal/fw/bpfload"
	"weir/internal/killpoint"
)

// A Dataplane is one generation of programs, loaded by this process.
type Dataplane struct {
	config  Config
	place   bpfload.Place
	objects *bpfload.Objects
	tables  *tables
	old     *tables      // to be copied from at Commit, if they cannot be kept; else nil
	copier  *copier      // from old to tables; nil before Commit, and if there is no old
	kept    bool         // tables are those of the generation before
	live    *liveRules   // what of the rules is replaced under traffic
	rules   *bpfload.Map // counters of the same rules in the generation before; nil if they are others
	crowded bool         // old has used up its numbers of paths
	lost    bool         // there were tables that cannot be read
	swept   bool         // the sweep runs
	ledger  ledger       // as it will be when this generation is live
	lock    *os.File     // held from Build to the end of Commit
}

// Close releases what the process holds. What is pinned goes on.
func (d *Dataplane) Close() error {
	var errs []error
	if d.live != nil {
		errs = append(errs, d.live.close())
	}
	if d.objects != nil {
		errs = append(errs, d.objects.Close())
	}
	for _, t := range []*tables{d.tables, d.old} {
		if t != nil {
			errs = append(errs, t.close())
		}
	}
	if d.rules != nil {
		errs = append(errs, d.rules.Close())
	}
	if d.lock != nil { // never committed: what Build made goes, if it is empty
		_ = d.place.Do(func() error { return killpoint.Remove(d.config.Dir) })
	}
	errs = append(errs, d.unlock())
	d.objects, d.live, d.tables, d.old, d.rules = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}

// Generation is the number that this generation has once it is live.
func (d *Dataplane) Generation() uint32 { return d.ledger.Generation }

func (d *Dataplane) unlock() error {
	if d.lock == nil {
		return nil
	}
	err := d.lock.Close()
	d.lock = nil
	return err
}

// generationMaps returns the maps that belong to this generation alone: they
// end with its pins.
func (d *Dataplane) generationMaps() map[string]*bpfload.Map {
	own := make(map[string]*bpfload.Map)
	for name, m := range d.objects.Maps {
		if !slices.Contains(keptMaps, name) {
			own[name] = m
		}
	}
	return own
}
