package dataplane

import (
	"errors"
	"sync/atomic"

	"weir/internal/bpfload"
)

// Values of enum status in bpf/state.h.
const (
	statusFree = iota
	statusNew
	statusLive
	statusDead
)

// A copier copies states into tables of another size while both are in use:
// first the old ones by the old generation, then the new ones by the new. It is
// run again and again, until the old generation sees no more packets.
type copier struct {
	old, new *tables
	moved    []move      // by index in old
	seed     uint64      // of the tuples' hash
	paths    *pathCopier // nil if paths and next hops keep their numbers
	copied   int
	lost     int
}

// A move is where a state went, and what it had counted then.
type move struct {
	index   uint32 // in new; 0: not copied
	lost    bool
	packets [2]uint64
}

// copyStates copies what is new in the old tables; nothing if there are none.
func (d *Dataplane) copyStates() error {
	if d.old == nil {
		return nil
	}
	if d.copier == nil {
		d.copier = &copier{old: d.old, new: d.tables, seed: d.ledger.HashSeed, moved: make([]move, len(d.old.states))}
		copyShared(d.tables.shared, d.old.shared)
		if !d.crowded {
			copyNumbers(d.tables.shared, d.old.shared)
		} else if err := d.copier.renumber(); err != nil {
			return err
		}
	}
	return d.copier.run()
}

// slack are the numbers of paths left out, for those that the old generation
// gives away while both run.
const slack = 64

// copyShared copies what is not of states.
func copyShared(to, from *xdpShared) {
	to.Now = from.Now
	to.Heartbeat = from.Heartbeat
	to.RouteGeneration = from.RouteGeneration
	to.Interfaces = from.Interfaces
}

// copyNumbers copies next hops, and which numbers of them and of paths are used:
// the maps that lead to them stay the same.
func copyNumbers(to, from *xdpShared) {
	to.NexthopsHigh = min(from.NexthopsHigh+slack, uint32(len(from.Nexthops)))
	to.PathsHigh = min(from.PathsHigh+slack, maxPaths-reservedPaths-firstPath)
	to.PathsReserved = from.PathsReserved
	to.Nexthops = from.Nexthops
}

func (c *copier) run() error {
	for i := 1; i < len(c.old.states); i++ {
		s, m := &c.old.states[i], &c.moved[i]
		live := atomic.LoadUint32(&s.Status) == statusLive
		if m.index != 0 && c.follow(s, m, live) {
			continue
		}
		if !live || m.lost {
			continue
		}
		if err := c.move(s, m); err != nil {
			return err
		}
	}
	return nil
}

// move enters a state into the new tables.
func (c *copier) move(s *xdpState, m *move) error {
	index, ok := c.take(&s.Forth.Tuple)
	if !ok {
		m.lost = true
		c.lost++
		return nil
	}
	n := &c.new.states[index]
	copied := *s
	copied.Status, copied.Entered = statusNew, 0
	*n = copied
	if err := c.renumberState(n); err != nil {
		return err
	}
	// In the order of bpf/create.h: the reply's tuple is the one that is reserved.
	err := c.new.enter(&n.Back.Tuple, index<<1|1, c.seed)
	if err == nil {
		atomic.StoreUint32(&n.Status, statusLive)
		if err = c.new.enter(&n.Forth.Tuple, index<<1, c.seed); err != nil {
			// the sweep releases the slot and the tuple that was entered
			atomic.StoreUint32(&n.Status, statusDead)
		} else {
			n.Entered = 1
		}
	} else {
		atomic.StoreUint32(&n.Status, statusDead)
	}
	if errors.Is(err, bpfload.ErrHasKey) { // a packet has made the state anew
		m.lost = true
		c.lost++
		return nil
	}
	if err != nil {
		return err
	}
	*m = move{index: index, packets: [2]uint64{n.Flow[0].Packets, n.Flow[1].Packets}}
	c.copied++
	return nil
}

// take counts a state and takes a slot for it, as state_count() and slot_take() of
// bpf/create.h do.
func (c *copier) take(first *xdpTuple) (uint32, bool) {
	shared := c.new.shared
	if atomic.AddUint32(&shared.StatesMade, 1)-atomic.LoadUint32(&shared.StatesReleased) > c.new.limit() {
		atomic.AddUint32(&shared.StatesMade, ^uint32(0))
		return 0, false
	}
	slots := uint32(len(c.new.states) - 1)
	index := first.home(c.seed, slots)
	for range slotTries {
		if atomic.CompareAndSwapUint32(&c.new.states[index].Status, statusFree, statusNew) {
			return index, true
		}
		index = index%slots + 1
	}
	atomic.AddUint32(&shared.StatesReleased, 1)
	return 0, false
}

// follow brings a copy up to date, unless packets of the new generation have
// used it already. It returns false if another connection has its slot now.
func (c *copier) follow(s *xdpState, m *move, live bool) bool {
	n := &c.new.states[m.index]
	same := n.Forth.Tuple == s.Forth.Tuple && n.Created == s.Created
	untouched := n.Flow[0].Packets == m.packets[0] && n.Flow[1].Packets == m.packets[1]
	if !live || !same {
		if untouched {
			atomic.CompareAndSwapUint32(&n.Status, statusLive, statusDead)
		}
		if !same {
			*m = move{}
		}
		return same
	}
	if untouched {
		n.Flow = s.Flow
		n.Phase, n.CheckAt = s.Phase, s.CheckAt
		m.packets = [2]uint64{n.Flow[0].Packets, n.Flow[1].Packets}
	}
	return true
}
