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
	config   Config
	place    bpfload.Place
	objects  *bpfload.Objects
	tables   *tables
	old      *origin                 // tables to copy from at Commit, if they cannot be kept; else nil
	rest     *origin                 // tables that an interrupted Commit was copying from; else nil
	copiers  []*copier               // from old and rest to tables; none before Commit
	keeps    []string                // maps of old that this generation uses
	kept     bool                    // tables belong to the previous generation too
	live     *liveRules              // the rules that are replaced under traffic
	rules    *bpfload.Map            // the previous generation's counters of the same rules; nil if the rules differ
	queues   map[string]*bpfload.Map // the previous generation's queues; nil if they differ
	flows    map[string]*bpfload.Map // the previous generation's records of states that have ended; nil: there are new ones
	spread   map[string]*bpfload.Map // the previous generation's frames on their way to other cores; nil: there are none
	outgoing map[string]*bpfload.Map // likewise, if this generation has other queues; nil once it is live
	spreads  map[int]bool            // interfaces whose frames are handed to other cores
	newRates bool                    // they have other rates
	crowded  bool                    // old has used up its path numbers
	restLost error                   // why those that an interrupted Commit was copying from cannot be read
	lost     error                   // why existing tables cannot be read; nil: they can, or there are none
	swept    bool                    // the garbage collection runs
	byMark   bool                    // the kernel looks up routes by mark
	owners   bool                    // the programs that look up a packet's user and group are loaded
	forwards bool                    // an earlier generation does, while this one is built

	limited    bool     // the programs know limiters; they go on to when no rules have any
	decrypted  bool     // programs see what IPsec has decrypted
	unfinished bool     // something is left of rules that were replaced
	ledger     ledger   // as it will be once this generation is live
	lock       *os.File // held from Build to the end of Commit
}

// Close releases what the process holds. Pinned programs and maps go on.
func (d *Dataplane) Close() error {
	var errs []error
	if d.live != nil {
		errs = append(errs, d.live.close())
	}
	if d.objects != nil {
		errs = append(errs, d.objects.Close())
	}
	if d.tables != nil {
		errs = append(errs, d.tables.close())
	}
	errs = append(errs, d.closeOrigins(), d.rules.Close(), d.closeQueues(), closeMaps(d.spread), closeMaps(d.flows), closeMaps(d.outgoing))
	if d.lock != nil { // never committed: remove the folder if it is empty
		_ = d.place.Do(func() error { return killpoint.Remove(d.config.Dir) })
	}
	errs = append(errs, d.unlock())
	d.objects, d.live, d.tables, d.rules, d.spread, d.flows, d.outgoing = nil, nil, nil, nil, nil, nil, nil
	return errors.Join(errs...)
}

// origins returns the tables that states are copied from.
func (d *Dataplane) origins() []*origin {
	var all []*origin
	for _, o := range []*origin{d.old, d.rest} {
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

func (d *Dataplane) closeOrigins() error {
	var errs []error
	for _, o := range d.origins() {
		errs = append(errs, o.close())
	}
	d.old, d.rest, d.copiers = nil, nil, nil
	return errors.Join(errs...)
}

// Generation returns the number that this generation has once it is live.
func (d *Dataplane) Generation() uint32 { return d.ledger.Generation }

func (d *Dataplane) unlock() error {
	if d.lock == nil {
		return nil
	}
	err := d.lock.Close()
	d.lock = nil
	return err
}

// generationMaps returns the maps that belong to this generation alone. They end with its
// pins.
func (d *Dataplane) generationMaps() map[string]*bpfload.Map {
	own := make(map[string]*bpfload.Map)
	for name, m := range d.objects.Maps {
		if !slices.Contains(keptMaps, name) {
			own[name] = m
		}
	}
	return own
}
