package dataplane

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"weir/internal/fw/ruleset"
	"weir/internal/killpoint"
)

// ErrNoRoom is returned (wrapped) if a generation's maps have no room for rules. Such
// rules need a generation of their own.
var ErrNoRoom = errors.New("there is no room for the rules")

// ErrUnfinished is returned (wrapped) if the new rules are in force, but something of those before
// is left. Finish tries again to remove it.
var ErrUnfinished = errors.New("something of the rules before is left")

// ReplaceRules replaces the rules in force under traffic, without loading programs.
// Anchors are replaced this way. Each packet meets either the old rules or the new ones.
// p is the result of ruleset.Program.Replace on the program in force. Rules that stay
// keep their counters, pools and global ids. New rules get ids that no rule has had.
// Of the options only timeouts, limits and how fragments meet the rules may differ, and there may not be more states than a
// lower limit allows. States and established packets are not touched. After an error
// the old rules are in force, unless it wraps ErrUnfinished. It runs within Alone.
func (d *Dataplane) ReplaceRules(p *ruleset.Program, o *ruleset.Options) error {
	if err := errors.Join(fits(d.objects.Maps, p), fitsCounters(p, 0), d.mayBind(p), d.mayChangeFamily(p), d.mayCopy(p), d.mayReassembleTCP(p)); err != nil {
		return fmt.Errorf("replace rules: %w", err)
	}
	if !d.tables.fits(o, p) {
		return fmt.Errorf("replace rules: other limits: %w", ErrNoRoom)
	}
	if len(p.Shapers) > 0 && o.MaxStates != d.config.Options.MaxStates { // the room for connections in queues follows it
		return fmt.Errorf("replace rules: queues with another limit of states: %w", ErrNoRoom)
	}
	if !slices.Equal(p.Fingerprints, d.config.Program.Fingerprints) { // packets compare with those in force
		return fmt.Errorf("replace rules: other fingerprints of operating systems: %w", ErrNoRoom)
	}
	if p.Ethers > 0 && d.config.Program.Ethers == 0 { // frames meet none, by a constant of the programs
		return fmt.Errorf("replace rules: ether rules: %w", ErrNoRoom)
	}
	if len(p.Limiters) > 0 && !d.limited { // likewise
		return fmt.Errorf("replace rules: the first limiter: %w", ErrNoRoom)
	}
	if queuesShape(p) != queuesShape(d.config.Program) {
		return fmt.Errorf("replace rules: other queues: %w", ErrNoRoom)
	}
	if p.CountsStates != d.config.Program.CountsStates { // likewise
		return fmt.Errorf("replace rules: the first pool with least-states: %w", ErrNoRoom)
	}
	return d.place.Do(func() error {
		if err := d.needOwnersNow(p); err != nil {
			return fmt.Errorf("replace rules: %w", err)
		}
		if err := d.reserveIDs(p); err != nil {
			return err
		}
		if err := errors.Join(d.countTables(p), d.addMembers(p)); err != nil {
			return err
		}
		if err := d.withRates(p, func() error { return d.live.replaceRules(p) }); err != nil {
			return err
		}
		killpoint.Done("replace the rules")
		if *o != d.config.Options {
			setTimeouts(d.tables.shared, o)
			setLimits(d.tables.shared, o)
		}
		d.config.Program, d.config.Options = p, *o
		return d.finishRules()
	})
}

// Alone runs f while no other process builds a generation, or writes its records. The error wraps ErrBusy while one does:
// then f has not run.
func (d *Dataplane) Alone(f func() error) error {
	var lock *os.File
	if err := d.place.Do(func() (err error) {
		lock, err = lockFolder(d.config.Dir, false)
		return err
	}); err != nil {
		return err
	}
	defer lock.Close()
	return f()
}

// Unfinished reports whether something is left of rules that were replaced.
func (d *Dataplane) Unfinished() bool { return d.unfinished }

// Finish removes what ReplaceRules has left. The error wraps ErrUnfinished, or ErrBusy while another
// process builds a generation.
func (d *Dataplane) Finish() error {
	return d.Alone(func() error { return d.place.Do(d.finishRules) })
}

func (d *Dataplane) finishRules() error {
	err := errors.Join(d.live.finish(), d.noteQueues(), d.pruneTableCounters())
	d.unfinished = err != nil
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnfinished, err)
	}
	return nil
}

// needOwnersNow is needOwners under traffic. When it returns, every packet under way has
// been given its owner.
func (d *Dataplane) needOwnersNow(p *ruleset.Program) error {
	before := d.owners
	if err := d.needOwners(p); err != nil || d.owners == before {
		return err
	}
	return d.live.swap(d.live.set) // the same rules: the kernel waits for the packets that use them
}

// reserveIDs records the global ids of new rules before any state can hold one.
func (d *Dataplane) reserveIDs(p *ruleset.Program) error {
	l, err := readLedger(d.config.Dir)
	if err != nil {
		return err
	}
	l.NextRule = max(l.NextRule, d.config.RuleBase+uint32(len(p.Rules)))
	l.Rules = uint32(len(p.Order))
	if old := d.config.Program; len(p.Rules) != len(old.Rules) || !slices.Equal(p.Order, old.Order) {
		l.Replaced++ // other rules: their counters do not fit the next generation
	}
	return writeLedger(d.config.Dir, l)
}

// RuleIDs returns the global ids of the rules in force, by number.
func (v *View) RuleIDs() ([]uint32, error) {
	info, err := v.Info()
	if err != nil {
		return nil, err
	}
	_, ids, _, err := v.rules.inForce()
	for i := range ids {
		ids[i] += info.RuleBase
	}
	return ids, err
}
