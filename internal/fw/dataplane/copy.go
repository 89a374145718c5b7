package dataplane

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"

	"weir/internal/fw/state"
	"weir/internal/killpoint"
)

// Values of enum status in bpf/state/state.h.
const (
	statusFree = iota
	statusNew
	statusLive
	statusDead
	statusDying
)

// A copier copies states into new tables while packets use both. First the old generation
// uses the old tables, then the new one uses the new tables. The copier runs again and
// again until the old generation sees no more packets.
type copier struct {
	old   *origin
	new   *importer
	moved []move       // by index in old
	seed  maphash.Seed // for the prints
	paths *pathCopier  // nil if paths keep their numbers
	// retries says that each run tries again to copy what was refused before.
	retries bool
	// older says that the new tables are for a version that knows no states of two address
	// families, no offsets of timestamps, and no gateways of another one than the packets'.
	older  bool
	copied int
	lost   int
}

// A move says where a state was copied to, and what it had counted when it was last read.
type move struct {
	index uint32 // in new; 0: not copied
	print uint32 // identifies the connection; 0 if it was never read
	lost  bool   // it could not be copied
	again bool   // packets have made it there again
	old   [2]tally
	new   [2]tally
}

// A tally holds the counts of one direction, modulo 2^32.
type tally struct{ packets, bytes uint32 }

func (f *xdpFlow) tally() tally { return tally{uint32(f.Packets), uint32(f.Bytes)} }

func newCopier(old *origin, to *importer) *copier {
	return &copier{old: old, new: to, seed: maphash.MakeSeed(), moved: make([]move, old.states.count)}
}

// copyStates copies what is new in the old tables. It does nothing if there are none.
func (d *Dataplane) copyStates() error {
	if len(d.copiers) == 0 {
		if err := d.beginCopy(); err != nil {
			return err
		}
	}
	for _, c := range d.copiers {
		// The second pass copies what came during the first.
		for range 2 {
			if err := c.run(); err != nil {
				return err
			}
		}
		killpoint.Done("copy the states")
	}
	if d.old != nil {
		return d.listSources(d.old)
	}
	return nil
}

// beginCopy prepares the new tables for copying.
func (d *Dataplane) beginCopy() error {
	if d.old == nil && d.rest == nil {
		return nil
	}
	if err := d.need(programImport); err != nil {
		return err
	}
	to := newImporter(d.tables, d.objects.Programs[programImport])
	if d.old != nil {
		c := newCopier(d.old, to)
		copyShared(d.tables.shared, d.old)
		if err := d.copyMaps(); err != nil {
			return err
		}
		if !d.crowded && d.keepsPaths() {
			copyNumbers(d.tables.shared, &d.old.shared)
		} else if err := c.renumber(); err != nil {
			return err
		}
		d.copiers = append(d.copiers, c)
	}
	if d.rest != nil {
		d.copiers = append(d.copiers, newCopier(d.rest, to))
	}
	return nil
}

// slack is how many path numbers are left out. The old generation may still assign that
// many while both run.
const slack = 64

// copyShared copies the fields that do not belong to states.
func copyShared(to *xdpShared, from *origin) {
	to.Now = atomic.LoadUint32(from.shared.now)
	to.RouteGeneration = atomic.LoadUint32(from.shared.routeGeneration)
	to.Recording = atomic.LoadUint32(from.shared.recording)
	copy(to.Logicals[:], from.logicals)
	for i := range from.interfaces {
		raw := (*xdpInterface)(&to.Interfaces[i])
		*raw = from.interfaces[i]
		raw.change(0, interfaceDevmap|interfacePrefetch) // these flags belong to the generation
	}
}

// copyNumbers copies which path numbers are used, because the map from paths to numbers
// stays the same.
func copyNumbers(to *xdpShared, from *sharedFields) {
	to.PathsHigh = min(atomic.LoadUint32(from.pathsHigh)+slack, maxPaths-reservedPaths-firstPath)
	to.PathsReserved = atomic.LoadUint32(from.pathsReserved)
}

func (c *copier) run() error {
	var s xdpState
	for i := 1; i < c.old.states.count; i++ {
		m := &c.moved[i]
		live, err := c.old.states.read(i, &s)
		if err != nil {
			c.countLost(m, 0)
			continue
		}
		if m.index != 0 {
			followed, err := c.update(&s, i, m, live)
			if err != nil {
				return err
			}
			if followed {
				continue
			}
		}
		if (m.lost || m.again) && (!live || c.print(&s) != m.print) {
			*m = move{} // another connection may have its index
		}
		if !live || m.again || m.lost && !c.retries {
			continue
		}
		if c.older && (s.changesFamily() || s.isNormal()) {
			c.countLost(m, c.print(&s))
			continue
		}
		if err := c.move(&s, i, m); err != nil {
			return err
		}
	}
	return nil
}

// A beside is what a state has beside it.
type beside struct {
	extra    xdpExtra
	limiters uint32         // as in xdpLimited
	hops     [4]importedHop // the next hops that rules have chosen, as in importing
	use      xdpPoolUse
	normal   xdpNormal
}

// beside returns what the state at an index of the old tables has.
func (c *copier) beside(s *xdpState, at int) (*beside, error) {
	more := &beside{extra: c.old.extra(at), limiters: c.old.limiters(at)}
	more.hops = c.chosen(s, more.extra)
	if uses := c.old.maps[mapPoolUses]; uses != nil && state.FlowFlags(s.FlowForth.Flags)&state.FlowPooled != 0 {
		if err := uses.Lookup(uint32(at), &more.use); err != nil && !isMissing(err) {
			return nil, fmt.Errorf("read where a state counts: %w", err)
		}
	}
	if normals := c.old.maps[mapNormals]; normals != nil && s.isNormal() {
		if err := normals.Lookup(uint32(at), &more.normal); err != nil && !isMissing(err) {
			return nil, fmt.Errorf("read the timestamps of a state: %w", err)
		}
	}
	return more, nil
}

// crossesFamily reports whether a rule has sent IPv4 packets to a gateway of IPv6. Earlier
// versions would look for it among IPv4's.
func (b *beside) crossesFamily(s *xdpState) bool {
	for d, tuple := range []*xdpTuple{&s.Forth.Tuple, &s.Back.Tuple} {
		h := &b.hops[d]
		if h.How != 0 && h.Gateway != (xdpAddr{}) && tuple.Src.addr().Is4() && !h.Gateway.addr().Is4() {
			return true
		}
	}
	return false
}

// countLost notes that a state cannot be copied.
func (c *copier) countLost(m *move, print uint32) {
	if !m.lost {
		*m = move{lost: true, print: print}
		c.lost++
	}
}

// count returns how many connections are copied now, and how many could not be.
func (c *copier) count() (copied, lost int) {
	for i := range c.moved {
		switch m := &c.moved[i]; {
		case m.index != 0:
			copied++
		case m.lost:
			lost++
		}
	}
	return copied, lost
}

// move enters a state into the new tables, unless packets have made it there or an
// earlier start has copied it. A refused state is lost: there is no room, or another
// connection has its tuples.
func (c *copier) move(s *xdpState, at int, m *move) error {
	// If an earlier start copied it and it is not there now, it has ended since.
	find := c.resumes() && int32(s.Created-c.old.begun) < 0
	entered, n := *s, xdpState{}
	if err := c.renumberState(&entered); err != nil {
		return err
	}
	more, err := c.beside(s, at)
	if err != nil {
		return err
	}
	if c.older && more.crossesFamily(s) {
		c.countLost(m, c.print(s))
		return nil
	}
	index, owner, err := c.new.importState(&entered, more, find)
	if err != nil {
		return err
	}
	counted := [2]tally{s.FlowForth.tally(), s.FlowBack.tally()}
	switch owned := c.new.read(owner, &n); {
	case index != 0:
		*m = move{index: index, print: c.print(s), old: counted, new: counted}
		c.copied++
	case !owned || n.Forth.Tuple != s.Forth.Tuple:
		if !find {
			c.countLost(m, c.print(s))
		}
	case n.Back.Tuple != s.Back.Tuple || s.over(): // a packet has made it again
		*m = move{again: true, print: c.print(s)}
	default:
		*m = move{index: owner, print: c.print(s), old: counted}
		return c.merge(&n, s, m)
	}
	return nil
}

// over reports whether both ends have closed: the next packet belongs to another
// connection.
func (s *xdpState) over() bool {
	return min(s.FlowForth.Peer, s.FlowBack.Peer) >= uint8(state.PeerFinWait2)
}

// resumes reports whether an earlier start has begun copying from these tables.
func (c *copier) resumes() bool { return c.old.begun != 0 }

// print distinguishes a connection from the next one at the same index.
func (c *copier) print(s *xdpState) uint32 {
	return uint32(maphash.Comparable(c.seed, s.Forth.Tuple)) ^ s.Created
}

// An importing is struct import of bpf/state/import.h.
type importing struct {
	State    xdpState
	Index    uint32
	Owner    uint32 // if Index is 0: number of the state that has one of the tuples
	Find     uint32 // 1: only ask for Owner
	Limiters uint32 // as in xdpLimited
	Extra    xdpExtra
	Hop      [4]importedHop // by direction, then of copies by side
	Use      xdpPoolUse     // with state.FlowPooled
	Normal   xdpNormal      // with state.FlowNormal
}

// An importedHop is struct nexthop_key: a next hop that a rule has chosen.
type importedHop struct {
	Gateway xdpAddr
	Ifindex uint32 // if the rule names the interface
	How     uint32 // its flags, of nexthopHow; 0: there is none
}

// update brings the copy of the state at an index of the old tables up to date. It returns false if another connection has its index
// now.
func (c *copier) update(s *xdpState, at int, m *move, live bool) (bool, error) {
	var n xdpState
	there := c.new.read(m.index, &n)
	if !live || c.print(s) != m.print {
		// It has ended in the old tables. If packets use the copy, the connection
		// goes on.
		if there && c.print(&n) == m.print && m.isUnused(&n) {
			c.new.end(m.index)
		}
		*m = move{}
		return !live, nil
	}
	if there && n.Forth.Tuple == s.Forth.Tuple && n.Back.Tuple == s.Back.Tuple {
		return true, errors.Join(c.merge(&n, s, m), c.mergeNormal(s, at, m))
	}
	return true, nil
}

// merge brings the copy n of s up to date.
func (c *copier) merge(n, s *xdpState, m *move) error {
	return c.new.change(m.index, n, func(n *xdpState) { m.merge(n, s) })
}

// isUnused reports whether no packet of the new generation has used the copy.
func (m *move) isUnused(n *xdpState) bool {
	return n.FlowForth.tally() == m.new[0] && n.FlowBack.tally() == m.new[1]
}
