package dataplane

import (
	"fmt"
	"slices"

	"weir/internal/fw/ruleset"
)

// changesFamily reports whether states may have sides of two address families: rules ask for
// it, or earlier rules did. Programs without such states have no code for them.
func (d *Dataplane) changesFamily() bool {
	if d.config.Program.ChangesFamily() || d.kept && d.tables.changesFamily() {
		return true
	}
	return slices.ContainsFunc([]*origin{d.old, d.rest}, func(o *origin) bool { return o != nil && changesFamily(o.extras) })
}

// changesFamily reports whether states of the tables may have two families.
func (t *tables) changesFamily() bool { return changesFamily(t.extras) }

func changesFamily(extras []xdpExtra) bool { return len(extras) > 0 && extras[0].Bound[0][1] != 0 }

// mayChangeFamily returns an error that wraps ErrNoRoom if the programs know no states of two
// families and the rules ask for them.
func (d *Dataplane) mayChangeFamily(p *ruleset.Program) error {
	if p.ChangesFamily() && !d.tables.changesFamily() {
		return fmt.Errorf("states of two address families: %w", ErrNoRoom)
	}
	return nil
}

// changesFamily reports whether the tuples of a state are of two address families.
func (s *xdpState) changesFamily() bool {
	return s.Forth.Tuple.Dst.addr().Is4() != s.Back.Tuple.Src.addr().Is4()
}

// noteKinds notes in the tables which kinds of states they may hold from now on.
func (d *Dataplane) noteKinds() {
	if d.bindsStates() {
		d.tables.bindStates()
	}
	if d.changesFamily() {
		d.tables.extras[0].Bound[0][1] = 1
	}
	if d.copies() {
		d.tables.extras[0].Copy[0] = 1
	}
	if d.reassemblesTCP() {
		d.tables.extras[0].Copy[1] = 1
	}
}
