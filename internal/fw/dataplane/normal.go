package dataplane

import (
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

// isNormal reports whether scrub (reassemble tcp) has passed a state.
func (s *xdpState) isNormal() bool {
	return state.FlowFlags(s.FlowForth.Flags)&state.FlowNormal != 0
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
