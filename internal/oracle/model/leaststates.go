package model

import (
	"slices"

	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// looks is how many addresses a pool with least-states compares at most for a connection.
const looks = 64

// A Pooled is an address that a pool with least-states has given to a connection. Of is the
// number under which the pool counts (resolve.Choice).
type Pooled struct {
	Of uint32
	hop
}

// leastStates takes the address with the fewest states, divided by its weight. As in pf, the
// look begins where the last one has ended, and ends at the first address without states. In
// a large pool the next look goes on behind the addresses that this one has compared.
func (m *Model) leastStates(rows []row, how *resolve.Choice, turn turn) hop {
	all := total(rows)
	begin := m.turns[turn] % all
	var best hop
	least, ended := uint64(0), begin
	if all > looks {
		ended += looks
	}
	for n := range min(all, looks) {
		here, weight := at(rows, (begin+n)%all)
		states := m.pooled(Pooled{how.Counts, here})
		if load := states * 0xffff / weight; n == 0 || load < least {
			best, least = here, load
		}
		if states == 0 {
			ended = begin + max(n, 1)
			break
		}
	}
	m.turns[turn] = ended
	return best
}

// pooled returns how many states count at an address. Those that have ended count until they
// are swept.
func (m *Model) pooled(at Pooled) (n uint64) {
	for _, c := range m.states {
		for i := range c.pooled {
			if c.pooled[i] == at {
				n++
			}
		}
	}
	return n
}

// PooledStates returns how many states count at each address.
func (m *Model) PooledStates() map[string]int {
	all := make(map[string]int)
	for _, c := range m.states {
		for _, p := range c.pooled {
			all[p.String()]++
		}
	}
	return all
}

// String returns the address, with the interface of a next hop.
func (p Pooled) String() string {
	if p.iface != "" {
		return p.addr.String() + "@" + p.iface
	}
	return p.addr.String()
}

// takes returns what the pools with least-states have given to a connection. If its source has
// one address for all destinations, that counts.
func (m *Model) takes(p *packet, reply state.Tuple, in, out *crossing) []Pooled {
	all := append(in.takes(), out.takes()...)
	nat := source(in, out)
	if !m.wantsEndpoint(p, nat) || nat.translation.Choice.Type != resolve.LeastStates {
		return all
	}
	at := slices.Index(all, Pooled{nat.translation.Choice.Counts, hop{addr: nat.addr}})
	all[at].addr = reply.Dst
	return all
}

// takes returns what the pools with least-states have given to a crossing.
func (c *crossing) takes() (all []Pooled) {
	take := func(how *resolve.Choice, h hop) {
		if how.Type == resolve.LeastStates && h.addr.IsValid() {
			all = append(all, Pooled{how.Counts, h})
		}
	}
	if c.other != nil {
		for _, t := range c.other.chosen {
			take(&t.translation.Choice, hop{addr: t.addr})
		}
	}
	for _, t := range []*target{c.nat, c.rdr} {
		if t != nil {
			take(&t.translation.Choice, hop{addr: t.addr})
		}
	}
	switch {
	case c.copied:
		take(&c.rule.Route.Choice, c.copyTo)
	case c.hop != nil:
		take(&c.rule.Route.Choice, *c.hop)
	}
	return all
}
