package dataplane

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"sync/atomic"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/limits"
	"weir/internal/fw/ruleset"
)

// Build loads a new generation beside the running one. It uses the states, next hops and
// counters pinned in cfg.Dir, or makes new ones. It attaches and pins nothing, and
// changes nothing that runs. It makes new tables if they have no room for the limit of states,
// or four times too much, if their layout differs, or if the path numbers are nearly used up.
// Commit then copies into them. Until Commit or Close no other process can build in the folder (ErrBusy). The
// caller closes the Dataplane, whether committed or not.
func Build(cfg Config) (_ *Dataplane, err error) {
	if n := cfg.Options.MaxStates; n < 1 || n > maxStates {
		return nil, fmt.Errorf("limit of states %d: must be 1 to %d", n, maxStates)
	}
	if n := cfg.Options.MaxSources; n > maxSources {
		return nil, fmt.Errorf("limit of sources %d: must be at most %d", n, maxSources)
	}
	d := &Dataplane{config: cfg, place: bpfload.At(cfg.Netns), spreads: make(map[int]bool)}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	return d, d.place.Do(d.build)
}

func (d *Dataplane) build() (err error) {
	if d.lock, err = lockFolder(d.config.Dir, false); err != nil {
		return err
	}
	if err := repair(d.config.Dir); err != nil {
		return err
	}
	if err := d.openLedger(); err != nil {
		return err
	}
	if err := d.openTables(); err != nil {
		return err
	}
	if err := d.openSpread(); err != nil {
		return err
	}
	if err := d.openFlows(); err != nil {
		return err
	}
	if d.byMark, err = bpfload.RoutesByMark(); err != nil {
		return err
	}
	d.byMark = d.byMark && !d.config.MarkBlind
	if d.decrypted, err = bpfload.SeesDecrypted(); err != nil {
		return err
	}
	if err := d.load(); err != nil {
		return err
	}
	if err := d.setFormat(); err != nil {
		return err
	}
	return d.fill()
}

// openLedger reads what earlier generations left.
func (d *Dataplane) openLedger() error {
	found, err := readLedger(d.config.Dir)
	fresh := isMissing(err)
	d.forwards = !fresh
	if errors.Is(err, ErrLayout) {
		d.lost, fresh = err, true
	}
	if err != nil && !fresh {
		return err
	}
	d.ledger = ledger{
		HashSeed:   found.HashSeed,
		Generation: found.Generation + 1,
		Layout:     found.Layout,
		From:       found.From,
		Copied:     found.Copied,
		NextRule:   max(found.NextRule, d.config.RuleBase+uint32(len(d.config.Program.Rules))),
		RuleBase:   d.config.RuleBase,
		Rules:      uint32(len(d.config.Program.Rules)),
	}
	if d.config.Unloaded {
		d.ledger.Unloaded = 1
	}
	d.ledger.Queues, d.ledger.QueueShape = queuesNumber(d.config.Program), queuesShape(d.config.Program)
	if fresh {
		d.ledger.HashSeed, err = newSeed(d.config.HashSeed)
		return err
	}
	d.newRates = found.Queues != d.ledger.Queues
	if found.Queues != 0 && (!d.newRates || found.QueueShape == d.ledger.QueueShape) {
		if err := d.openQueues(); err != nil {
			return err
		}
	}
	if found.RuleBase == d.ledger.RuleBase && found.Rules == d.ledger.Rules && found.Replaced == 0 {
		return d.openCounters()
	}
	return nil
}

// openCounters opens the rule counters of the generation before. If the rules are the
// same they go on, as packet and byte counters do.
func (d *Dataplane) openCounters() (err error) {
	if d.rules, err = openRuleCounters(d.config.Dir); err != nil {
		return err
	}
	if checkLayout(mapRuleCounters, d.rules) != nil || d.rules.MaxEntries() != ruleEntries(d.config.Program, d.config.Room)[mapRuleCounters] {
		err = d.rules.Close()
		d.rules = nil
	}
	return err
}

func newSeed(fixed uint64) (uint64, error) {
	if fixed != 0 {
		return fixed, nil
	}
	var seed [8]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return 0, fmt.Errorf("choose a hash seed: %w", err)
	}
	return binary.NativeEndian.Uint64(seed[:]), nil
}

// openTables opens the tables to keep, or to copy from.
func (d *Dataplane) openTables() error {
	dir := filepath.Join(d.config.Dir, tablesDir)
	if _, err := os.Stat(dir); isMissing(err) || d.lost != nil {
		return nil
	}
	switch d.ledger.Layout {
	case stateLayout:
	case 0:
		d.lost = fmt.Errorf("there is no ledger of their layout: %w", ErrLayout)
		return nil
	default:
		return d.openOther(dir)
	}
	found, err := openTables(dir)
	if errors.Is(err, ErrLayout) {
		return d.openOther(dir)
	}
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	d.crowded = crowded(found.shared.PathsHigh)
	if found.fits(&d.config.Options, d.config.Program) && !d.crowded {
		d.tables, d.kept = found, true
	} else {
		d.old = originOf(found)
	}
	return d.openRest()
}

// openOther opens tables of another layout. States that cannot be read are lost.
func (d *Dataplane) openOther(dir string) (err error) {
	if d.old, err = openOrigin(dir, d.ledger.Layout); err != nil {
		d.old, d.lost = nil, err
		return nil
	}
	d.crowded = crowded(atomic.LoadUint32(d.old.shared.pathsHigh))
	return d.openRest()
}

// openRest opens the tables that an interrupted Commit was copying from.
func (d *Dataplane) openRest() error {
	dir := filepath.Join(d.config.Dir, oldTablesDir)
	if d.ledger.Copied == 0 || d.ledger.From == 0 {
		return nil
	}
	if _, err := os.Stat(dir); isMissing(err) {
		return nil
	}
	rest, err := openOrigin(dir, d.ledger.From)
	if err != nil {
		d.restLost = err
		return nil
	}
	rest.begun = d.ledger.Copied
	d.rest = rest
	return nil
}

// crowded reports whether three quarters of the path numbers are used up. Packets only
// ever add to them. So a reload makes new tables and copies only the paths that states
// still use.
func crowded(high uint32) bool {
	return high > (maxPaths-reservedPaths)/4*3
}

// Crowded reports whether a load should make new tables: the numbers of rule paths are
// nearly used up.
func (d *Dataplane) Crowded() bool { return crowded(atomic.LoadUint32(&d.tables.shared.PathsHigh)) }

// load loads the programs that Build needs. If the programs of the XDP hook do not load,
// the error goes to the first interface that uses the hook.
func (d *Dataplane) load() error {
	err := d.loadObjects()
	if err != nil && d.config.XDP {
		d.config.XDP = false
		err = d.loadObjects()
	}
	return err
}

func (d *Dataplane) loadObjects() error {
	read := d.config.specs
	if read == nil {
		read = loadSpecs
	}
	specs, err := read()
	if err != nil {
		return err
	}
	d.twins(specs)
	reused, err := d.reused(specs)
	if err != nil {
		return err
	}
	d.limited = len(d.config.Program.Limiters) > 0
	options := bpfload.Options{
		Maps:     reused,
		Entries:  d.sizes(),
		Values:   d.values(),
		Shared:   []string{mapShared, mapQueueData},
		Programs: d.initialPrograms(),
		Aside:    d.forwards,
	}
	if d.objects, err = bpfload.Load(specs, options); err != nil {
		return err
	}
	if err := d.needOwners(d.config.Program); err != nil {
		return err
	}
	if d.kept {
		d.noteKinds()
		return nil
	}
	d.ledger.Layout, d.ledger.From, d.ledger.Copied = stateLayout, 0, 0
	if d.old != nil {
		d.ledger.From, d.ledger.Copied = d.old.layout, max(1, atomic.LoadUint32(d.old.shared.now))
	}
	if d.tables, err = takeTables(d.objects.Maps); err != nil {
		return err
	}
	setLimits(d.tables.shared, &d.config.Options)
	d.tables.shared.LimiterRoom = d.config.Program.LimiterEntries()
	d.noteKinds()
	return nil
}

// chunks returns how many chunks a bit vector of the largest number of rules has.
func (d *Dataplane) chunks() uint32 {
	return uint32(ruleset.Chunks(int(ruleEntries(d.config.Program, d.config.Room)["rules"])))
}

// sizes returns the sizes of all maps whose size is not fixed.
func (d *Dataplane) sizes() map[string]uint32 {
	all := ruleEntries(d.config.Program, d.config.Room)
	maps.Copy(all, d.tableSizes())
	maps.Copy(all, d.queueEntries())
	maps.Copy(all, d.spreadEntries())
	maps.Copy(all, d.flowEntries())
	return all
}

// reused returns the maps that the programs are loaded over: the counters of unchanged
// rules, and all tables, or only those whose size does not depend on the limit of states.
func (d *Dataplane) reused(specs []*bpfload.Spec) (reused map[string]*bpfload.Map, err error) {
	switch {
	case d.kept:
		reused = maps.Clone(d.tables.maps)
	case d.old == nil:
		reused = make(map[string]*bpfload.Map)
	default:
		if reused, err = d.keepable(specs); err != nil {
			return nil, err
		}
	}
	if d.rules != nil {
		reused[mapRuleCounters] = d.rules
	}
	if !d.kept { // states get other numbers, which their counters would not have
		if err := d.closeQueues(); err != nil {
			return nil, err
		}
	}
	maps.Copy(reused, d.queues)
	maps.Copy(reused, d.spread)
	maps.Copy(reused, d.flows)
	return reused, nil
}

func loadSpecs() ([]*bpfload.Spec, error) {
	var specs []*bpfload.Spec
	for _, load := range []func() (*bpfload.Spec, error){loadXdp, loadTc, loadGc, loadShaping} {
		spec, err := load()
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// values returns the settings of bpf/config.h.
func (d *Dataplane) values() map[string]any {
	queues, sizes := queueSizes(d.config.Program, d.config.Options.MaxStates), d.tableSizes()
	return map[string]any{
		"hash_keys":        newHashKeys(d.ledger.HashSeed),
		"prefetch_secret":  prefetchSecret(d.ledger.HashSeed),
		"pool_secret":      poolSecret(d.ledger.HashSeed),
		"random_seed":      d.config.RandomSeed,
		"bucket_mask":      sizes[mapTuples] - 1,
		"state_capacity":   sizes[mapStates] - 1,
		"source_capacity":  sizes[mapSources] - 1,
		"rule_base":        d.config.RuleBase,
		"rule_chunks":      d.chunks(),
		"mark_mask":        d.config.Options.MarkMask,
		"mark_shift":       uint8(bits.TrailingZeros32(d.config.Options.MarkMask)),
		"handoff_records":  handoffRecords(d.config.Options.MarkMask),
		"route_marks":      asByte(d.byMark),
		"xfrm_states":      asByte(d.decrypted),
		"note_secret":      noteSecret(d.ledger.HashSeed),
		"states_bound":     asByte(d.bindsStates()),
		"af_to":            asByte(d.changesFamily()),
		"copies":           asByte(d.copies()),
		"ether_rules":      asByte(d.config.Program.Ethers > 0),
		"limiters_defined": asByte(d.limited),
		"least_states":     asByte(d.config.Program.CountsStates),
		"reassembles_tcp":  asByte(d.reassemblesTCP()),
		"flows_exported":   asByte(d.config.Flows),
		"queues":           asByte(len(d.config.Program.Shapers) > 0),
		"queue_slots":      queues.slots,
		"queue_host_slots": queues.hosts,
		"queue_cpus":       queues.cores,
		"unloaded":         asByte(d.config.Unloaded),
	}
}

// Values of enum mark of bpf/config.h. Values below markRecord are no records.
const (
	markDivert = 3
	markRecord = 4
)

// DivertMark returns the mark of packets that sockets of the box have been given.
func DivertMark(mask uint32) uint32 { return markDivert << bits.TrailingZeros32(mask) }

// handoffRecords returns how many packets with the same tuple weir's bits of the mark can
// distinguish.
func handoffRecords(mask uint32) uint8 {
	return uint8(min(1<<bits.OnesCount32(mask)-markRecord, limits.HandoffRecords))
}

func asByte(set bool) uint8 {
	if set {
		return 1
	}
	return 0
}

// fill fills the maps of this generation.
func (d *Dataplane) fill() (err error) {
	if err := d.fillTails(); err != nil {
		return err
	}
	if d.config.Frozen {
		setTimeouts(d.tables.shared, &d.config.Options)
		d.tables.shared.Timeout = d.tables.shared.TimeoutSet
		d.tables.shared.TimeoutFrag = d.tables.shared.TimeoutFragSet
		d.tables.shared.TimeoutPart = 1024
	}
	if err := fitsCounters(d.config.Program, 0); err != nil {
		return err
	}
	if err := d.countTables(d.config.Program); err != nil {
		return err
	}
	if err := d.fillQueues(); err != nil {
		return err
	}
	numbers, err := d.newLimitNumbers()
	if err != nil {
		return err
	}
	d.live, err = newLiveRules(d.objects, d.config.Program, numbers)
	return err
}
