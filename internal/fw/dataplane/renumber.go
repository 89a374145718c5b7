package dataplane

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"weir/internal/fw/state"
)

// A pathCopier gives new numbers to the paths that states use, and copies their counters.
type pathCopier struct {
	keys    map[uint32]xdpPath // by old number
	numbers map[uint32]uint32  // new number by old
	values  []xdpPathCounter   // of one counter, by CPU
}

// renumber starts with no path in use.
func (c *copier) renumber() error {
	p := &pathCopier{keys: make(map[uint32]xdpPath), numbers: make(map[uint32]uint32)}
	var err error
	if p.values, err = newPerCPU[xdpPathCounter](); err != nil {
		return err
	}
	c.paths = p
	paths := c.old.maps[mapPaths]
	if paths == nil || c.old.maps[mapPathCounters] == nil || paths.KeySize() != c.new.maps[mapPaths].KeySize() {
		// The tables have another layout, or a killed stop has removed the paths.
		// All states count under pathFull.
		return nil
	}
	var key xdpPath
	var number uint32
	each := paths.Iterate()
	for each.Next(&key, &number) {
		p.keys[number] = key
	}
	if err := each.Err(); err != nil {
		return fmt.Errorf("list the paths: %w", err)
	}
	for number := range uint32(firstPath) {
		if err := c.copyCounter(number, number); err != nil {
			return err
		}
	}
	return nil
}

// renumberState makes a copied state count under its path's new number and look up its
// next hops again.
func (c *copier) renumberState(s *xdpState) error {
	for _, course := range []*xdpCourse{&s.Forth, &s.Back} {
		if course.Nexthop != nexthopLocal {
			course.Nexthop = 0
		}
	}
	if c.paths == nil || s.Path < firstPath {
		return nil
	}
	number, err := c.newPath(uint32(s.Path))
	s.Path = uint16(number)
	return err
}

// chosen returns the next hops that rules have chosen for a state: by direction, then those of
// copies by side. An older layout has none.
func (c *copier) chosen(s *xdpState, extra xdpExtra) (hops [4]importedHop) {
	if c.old.other {
		return hops
	}
	shared := (*xdpShared)(unsafe.Pointer(unsafe.SliceData(c.old.all)))
	note := func(to int, number uint16, asked bool) {
		n := &shared.Nexthops[int(number)%len(shared.Nexthops)]
		if !asked || n.Flags&nexthopChosen == 0 {
			return
		}
		hops[to] = importedHop{Gateway: xdpAddr(n.Gateway), How: uint32(n.Flags & nexthopHow)}
		if n.Flags&nexthopNarrow != 0 {
			hops[to].How |= nexthopNarrow | uint32(n.Mtu)<<16
		}
		if n.Flags&nexthopFixed != 0 {
			hops[to].Ifindex = n.Ifindex
		}
	}
	for d, course := range []*xdpCourse{&s.Forth, &s.Back} {
		note(d, course.Nexthop, s.Entered&keptRoutes&(0x40<<d) != 0)
	}
	for side, flow := range []*xdpFlow{&s.FlowForth, &s.FlowBack} {
		note(2+side, extra.Copy[side], state.FlowFlags(flow.Flags)&state.FlowCopied != 0)
	}
	return hops
}

// newPath returns the new number of an old path.
func (c *copier) newPath(old uint32) (uint32, error) {
	if number, ok := c.paths.numbers[old]; ok {
		return number, nil
	}
	key, ok := c.paths.keys[old]
	if !ok { // assigned after the paths were listed
		return pathFull, nil
	}
	number, err := c.enterPath(&key)
	if err != nil {
		return 0, err
	}
	c.paths.numbers[old] = number
	if number == pathFull {
		return number, nil
	}
	return number, c.copyCounter(old, number)
}

// enterPath gives a path a number, as rule_path_index() of bpf/observe/rule_path.h does.
// If a packet of the new generation has already given it one, enterPath returns that.
func (c *copier) enterPath(key *xdpPath) (uint32, error) {
	paths := c.new.maps[mapPaths]
	var number uint32
	if paths.Lookup(key, &number) == nil {
		return number, nil
	}
	number = atomic.AddUint32(c.new.shared.pathsHigh, 1) - 1 + firstPath
	if number >= maxPaths-reservedPaths {
		return pathFull, nil
	}
	if err := paths.Put(key, number); err != nil {
		return 0, fmt.Errorf("enter a path: %w", err)
	}
	return number, nil
}

func (c *copier) copyCounter(from, to uint32) error {
	if err := c.readCounter(from); err != nil {
		return fmt.Errorf("read the counter of path %d: %w", from, err)
	}
	if err := c.new.maps[mapPathCounters].Put(to, c.paths.values); err != nil {
		return fmt.Errorf("write the counter of path %d: %w", to, err)
	}
	return nil
}

// readCounter reads a counter of the old tables. Layouts before 15 count both directions together.
func (c *copier) readCounter(number uint32) error {
	old := c.old.maps[mapPathCounters]
	if uintptr(old.ValueSize()) == unsafe.Sizeof(xdpPathCounter{}) {
		return old.Lookup(number, c.paths.values)
	}
	both := make([]xdpCounter, len(c.paths.values))
	if err := old.Lookup(number, both); err != nil {
		return err
	}
	for cpu := range both {
		c.paths.values[cpu] = xdpPathCounter{Way: [2]xdpCounter{both[cpu]}}
	}
	return nil
}
