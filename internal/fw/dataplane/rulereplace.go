package dataplane

import (
	"errors"
	"fmt"

	"weir/internal/fw/ruleset"
)

// ErrNoRoom is returned (wrapped) by ReplaceRules where the generation has no room
// for the rules: they have to be loaded.
var ErrNoRoom = errors.New("there is no room for the rules")

// ReplaceRules puts rules in the place of those in force, under traffic and without
// loading programs: an anchor is replaced so. A packet is judged by the rules before or
// by those after. p is what ruleset.Program.Replace has made of the program in force.
// Rules that are kept keep their counters, their pools and their global id; new rules get
// ids that no rule has had. Options stay what they were. States and established
// packets are not touched. After an error the rules before are in force.
func (d *Dataplane) ReplaceRules(p *ruleset.Program) error {
	if !fits(d.objects.Maps, p) {
		return fmt.Errorf("replace rules: %w", ErrNoRoom)
	}
	err := d.place.Do(func() error { return d.reserveIDs(p) })
	if err != nil {
		return err
	}
	if err := d.live.replaceRules(p); err != nil {
		return err
	}
	d.config.Program = p
	return nil
}

// reserveIDs notes the global ids of new rules before any state may hold one.
func (d *Dataplane) reserveIDs(p *ruleset.Program) error {
	l, err := readLedger(d.config.Dir)
	if err != nil {
		return err
	}
	l.NextRule = max(l.NextRule, d.config.RuleBase+uint32(len(p.Rules)))
	l.Replaced++
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
