package dataplane

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"

	"weir/internal/fw/bpfload"
)

// Values of enum status in bpf/state/state.h.
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
	moved    []move // by index in old
	importer *bpfload.Program
	seed     maphash.Seed // of the prints
	paths    *pathCopier  // nil if paths keep their numbers
	copied   int
	lost     int
}

// A move is where a state went, and what it had counted then.
type move struct {
	index   uint32 // in new; 0: not copied
	print   uint32 // of the connection
	lost    bool
	packets [2]uint64
}

// copyStates copies what is new in the old tables; nothing if there are none.
func (d *Dataplane) copyStates() error {
	if d.old == nil {
		return nil
	}
	if d.copier == nil {
		if err := d.need(programImport); err != nil {
			return err
		}
		d.copier = &copier{old: d.old, new: d.tables, importer: d.objects.Programs[programImport], seed: maphash.MakeSeed(), moved: make([]move, len(d.old.states))}
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
	to.RouteGeneration = from.RouteGeneration
	to.Recording = from.Recording
	to.Interfaces = from.Interfaces
	to.Logicals = from.Logicals
}

// copyNumbers copies which numbers of paths are used: the map that leads to them
// stays the same.
func copyNumbers(to, from *xdpShared) {
	to.PathsHigh = min(from.PathsHigh+slack, maxPaths-reservedPaths-firstPath)
	to.PathsReserved = from.PathsReserved
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

// move enters a state into the new tables. What is refused there is lost: packets
// have made it anew, or there is no room.
func (c *copier) move(s *xdpState, m *move) error {
	a := importing{State: *s}
	if !sameState(s, &a.State) {
		return nil // another connection has its slot now
	}
	if err := c.renumberState(&a.State); err != nil {
		return err
	}
	if _, err := bpfload.RunSyscall(c.importer, &a); err != nil {
		return fmt.Errorf("copy a state: %w", err)
	}
	if a.Index == 0 {
		m.lost = true
		c.lost++
		return nil
	}
	*m = move{
		index: a.Index, print: c.print(&a.State),
		packets: [2]uint64{a.State.FlowForth.Packets, a.State.FlowBack.Packets},
	}
	c.copied++
	return nil
}

// print tells a connection from the one that has its slot next.
func (c *copier) print(s *xdpState) uint32 {
	return uint32(maphash.Comparable(c.seed, s.Forth.Tuple)) ^ s.Created
}

// An importing is struct importing of bpf/state/import.h.
type importing struct {
	State xdpState
	Index uint32
	_     [15]uint32
}

// sameState reports whether what was read of a state is of one connection, which
// still lives.
func sameState(s, read *xdpState) bool {
	return atomic.LoadUint32(&s.Status) == statusLive && s.Created == read.Created &&
		s.Forth.Tuple == read.Forth.Tuple && s.Back.Tuple == read.Back.Tuple
}

// follow brings a copy up to date, unless packets of the new generation have
// used it already. It returns false if another connection has its slot now.
func (c *copier) follow(s *xdpState, m *move, live bool) bool {
	n := &c.new.states[m.index]
	same := c.print(s) == m.print
	untouched := c.print(n) == m.print && n.FlowForth.Packets == m.packets[0] && n.FlowBack.Packets == m.packets[1]
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
		n.FlowForth, n.FlowBack = s.FlowForth, s.FlowBack
		n.Phase, n.CheckAt = s.Phase, s.CheckAt
		m.packets = [2]uint64{n.FlowForth.Packets, n.FlowBack.Packets}
	}
	return true
}
