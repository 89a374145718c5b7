package dataplane

import (
	"errors"
	"fmt"

	"weir/internal/fw/ruleset"
)

// ErrNoRoom is returned (wrapped) by ReplaceRules if the generation has no room for the
// rules. They must be loaded instead.
var ErrNoRoom = errors.New("there is no room for the rules")

// ReplaceRules replaces the rules in force under traffic, without loading programs.
// Anchors are replaced this way. Each packet meets either the old rules or the new ones.
// p is the result of ruleset.Program.Replace on the program in force. Rules that stay
// keep their counters, pools and global ids. New rules get ids that no rule has had.
// Options do not change. States and established packets are not touched. After an error
// the old rules are in force.
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

// reserveIDs records the global ids of new rules before any state can hold one.
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
