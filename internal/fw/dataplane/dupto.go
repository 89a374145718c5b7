package dataplane

import (
	"fmt"
	"slices"

	"weir/internal/fw/ruleset"
)

// copies reports whether states may have copies sent, or their packets to programs: rules ask for
// it, or earlier rules did. Then XDP leaves all that meets the rules to TCX.
func (d *Dataplane) copies() bool {
	if d.config.Program.Copies() || d.kept && copies(d.tables.extras) {
		return true
	}
	return slices.ContainsFunc([]*origin{d.old, d.rest}, func(o *origin) bool { return o != nil && copies(o.extras) })
}

func copies(extras []xdpExtra) bool { return len(extras) > 0 && extras[0].Copy[0] != 0 }

// mayCopy returns an error that wraps ErrNoRoom if the programs send no copies and the rules
// ask for them.
func (d *Dataplane) mayCopy(p *ruleset.Program) error {
	if p.Copies() && !copies(d.tables.extras) {
		return fmt.Errorf("copies or diversion of packets: %w", ErrNoRoom)
	}
	return nil
}
