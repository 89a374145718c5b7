package dataplane

import (
	"errors"
	"fmt"
	"slices"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/state"
)

// reassemblesTCP reports whether states may have what scrub (reassemble tcp) needs: rules ask for
// it, or earlier rules did. Programs without such states have no code for them.
func (d *Dataplane) reassemblesTCP() bool {
	if d.config.Program.ReassemblesTCP() || d.kept && hasNormals(d.tables.extras) {
		return true
	}
	return slices.ContainsFunc([]*origin{d.old, d.rest}, func(o *origin) bool { return o != nil && hasNormals(o.extras) })
}

func hasNormals(extras []xdpExtra) bool { return len(extras) > 0 && extras[0].Copy[1] != 0 }

// mayReassembleTCP returns an error that wraps ErrNoRoom if the programs do not know scrub
// (reassemble tcp) and the rules ask for it.
func (d *Dataplane) mayReassembleTCP(p *ruleset.Program) error {
	if p.ReassemblesTCP() && !hasNormals(d.tables.extras) {
		return fmt.Errorf("reassemble tcp: %w", ErrNoRoom)
	}
	return nil
}

// isNormal reports whether rules with scrub (reassemble tcp) apply to a state.
func (s *xdpState) isNormal() bool {
	return state.FlowFlags(s.FlowForth.Flags)&state.FlowNormal != 0
}

// mergeNormal tells the copy of a state which packets have begun its directions in the old tables since it was copied. Else
// the timestamps of an end whose SYN has met the old generation would get their offset there alone.
func (c *copier) mergeNormal(s *xdpState, at int, m *move) error {
	from, to := c.old.maps[mapNormals], c.new.maps[mapNormals]
	if from == nil || to == nil || !s.isNormal() {
		return nil
	}
	var old, n xdpNormal
	if err := errors.Join(from.Lookup(uint32(at), &old), to.Lookup(m.index, &n)); err != nil {
		if isMissing(err) {
			return nil // it has ended meanwhile
		}
		return fmt.Errorf("read the timestamps of a state: %w", err)
	}
	changed := false
	for d := range n.Way {
		was, begun := &n.Way[d], &old.Way[d]
		has := state.NormalBegun | state.NormalStamped
		if state.NormalFlags(begun.Flags&^was.Flags)&has == 0 {
			continue // the copy has begun as well
		}
		was.Flags |= begun.Flags &^ uint8(state.NormalChecked)
		was.First, was.Value, was.Echo, was.Seen, was.Ttl = begun.First, begun.Value, begun.Echo, begun.Seen, max(was.Ttl, begun.Ttl)
		changed = true
	}
	if !changed {
		return nil
	}
	if err := to.Put(m.index, n); err != nil {
		return fmt.Errorf("write the timestamps of a state: %w", err)
	}
	return nil
}

// decodeNormal fills in what scrub (reassemble tcp) has of a state.
func (t *tables) decodeNormal(s *state.State, index uint32) {
	var n xdpNormal
	if s.Flow[0].Flags&state.FlowNormal == 0 || t.maps[mapNormals].Lookup(index, &n) != nil {
		return // it has ended meanwhile
	}
	for d := range n.Way {
		w := &n.Way[d]
		s.Normal[d] = state.Normal{
			Offset: w.Offset, First: w.First, Value: w.Value, Echo: w.Echo,
			Seen: state.Tick(w.Seen), TTL: w.Ttl, Flags: state.NormalFlags(w.Flags),
		}
		s.Scrub[d].ReassembleTCP = s.Normal[d].Flags&(state.NormalEnters|state.NormalLeaves) != 0
	}
}
