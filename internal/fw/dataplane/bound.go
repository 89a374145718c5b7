package dataplane

import (
	"fmt"
	"slices"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
)

// statesBoundIn is the bit of state.entered (bpf/state/state.h) of a bound in side. That of
// the out side is the next.
const statesBoundIn = 0x04

// bindsStates reports whether states may be bound to interfaces: rules ask for it, or
// states of earlier rules are. Programs without such states have no code for them.
func (d *Dataplane) bindsStates() bool {
	if d.config.Program.BindsStates() || d.kept && d.tables.bindsStates() {
		return true
	}
	return slices.ContainsFunc([]*origin{d.old, d.rest}, func(o *origin) bool { return o != nil && bindsStates(o.extras) })
}

// bindsStates reports whether states of the tables may be bound.
func (t *tables) bindsStates() bool { return bindsStates(t.extras) }

func bindsStates(extras []xdpExtra) bool { return len(extras) > 0 && extras[0].Bound[0][0] != 0 }

// bindStates notes that states of the tables may be bound from now on.
func (t *tables) bindStates() { t.extras[0].Bound[0][0] = 1 }

// mayBind returns an error that wraps ErrNoRoom if the programs cannot bind states and the
// rules ask for it.
func (d *Dataplane) mayBind(p *ruleset.Program) error {
	if p.BindsStates() && !d.tables.bindsStates() {
		return fmt.Errorf("states bound to interfaces: %w", ErrNoRoom)
	}
	return nil
}

// mapExtras maps what is beside the states of an origin of another layout, if it has that
// and it has the present form.
func (o *origin) mapExtras() error {
	m := o.maps[mapExtras]
	if m == nil || checkLayout(mapExtras, m) != nil {
		return nil
	}
	memory, err := bpfload.MapMemory(m)
	if err != nil {
		return err
	}
	o.memory = append(o.memory, memory)
	o.extras, err = bpfload.Values[xdpExtra](memory)
	return err
}

// extra returns what is beside the state at an index.
func (o *origin) extra(index int) xdpExtra {
	if index >= len(o.extras) {
		return xdpExtra{}
	}
	return o.extras[index]
}
