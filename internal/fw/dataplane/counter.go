package dataplane

import (
	"fmt"
	"slices"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/reason"
)

// A Counter counts packets and bytes of IP packets.
type Counter struct {
	Packets uint64
	Bytes   uint64
}

// An InterfaceCounters holds how many packets ended with each reason at one interface.
type InterfaceCounters struct {
	Ifindex int // 0: all interfaces that are unknown or have no counters of their own
	Reasons [reason.Count]Counter
}

// Interfaces returns the counters of all interfaces, by index. Interfaces hasOthers
// MaxInterfaces are counted together and come last, with index 0. So are interfaces with
// weir's programs that weir was not told about.
func (v *View) Interfaces() ([]InterfaceCounters, error) {
	const shared = MaxInterfaces * uint32(reason.Count)
	var all []InterfaceCounters
	hasOthers := false
	for i := range v.tables.shared.Interfaces {
		at := v.tables.shared.Interfaces[i].Counters
		if at == shared {
			hasOthers = true
		}
		if at == 0 || at == shared {
			continue
		}
		c := InterfaceCounters{Ifindex: i}
		if err := v.readReasons(&c, at); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	var others InterfaceCounters
	for _, at := range []uint32{shared, 0} {
		if err := v.readReasons(&others, at); err != nil {
			return nil, err
		}
	}
	if hasOthers || others.Reasons != [reason.Count]Counter{} {
		all = append(all, others)
	}
	return all, nil
}

// readReasons adds the counters of one interface, which begin at index first.

func (v *View) readReasons(c *InterfaceCounters, at uint32) error {
	values, err := newPerCPU[xdpCounter]()
	if err != nil {
		return err
	}
	for r := range c.Reasons {
		counted, err := sumCounter(v.tables.maps[mapInterfaceCounters], at+uint32(r), values)
		if err != nil {
			return err
		}
		c.Reasons[r].Packets += counted.Packets
		c.Reasons[r].Bytes += counted.Bytes
	}
	return nil
}

// PacketsByCore returns how many packets of interfaces each core has counted. Interfaces that are unknown,
// or that share their counters, have none.
func (v *View) PacketsByCore(interfaces ...int) ([]uint64, error) {
	values, err := newPerCPU[xdpCounter]()
	if err != nil {
		return nil, err
	}
	packets := make([]uint64, len(values))
	for _, index := range interfaces {
		at := uint32(0)
		if index < len(v.tables.shared.Interfaces) {
			at = v.tables.shared.Interfaces[index].Counters
		}
		if at == 0 || at == MaxInterfaces*uint32(reason.Count) {
			continue
		}
		for r := range uint32(reason.Count) {
			if _, err := sumCounter(v.tables.maps[mapInterfaceCounters], at+r, values); err != nil {
				return nil, err
			}
			for core := range values {
				packets[core] += values[core].Packets
			}
		}
	}
	return packets, nil
}

// A Path is a set of rules that packets matched together, and its counters.
type Path struct {
	Rules    []uint32    // global ids in order, those of the in crossing first
	Crossing [2][]uint32 // the same by crossing: in, out
	Full     bool        // counts all sets that found no path of their own
	States   uint64      // live states that count under it
	Way      [2]Counter  // by the direction of the states; what has no state counts as direction 0
}

// Counter returns what both directions have counted.
func (p *Path) Counter() Counter {
	return Counter{p.Way[0].Packets + p.Way[1].Packets, p.Way[0].Bytes + p.Way[1].Bytes}
}

// Paths returns all paths. The first, without rules, counts packets that no
// rule matched.
func (v *View) Paths() ([]Path, error) {
	values, err := newPerCPU[xdpPathCounter]()
	if err != nil {
		return nil, err
	}
	all := []Path{{}, {Full: true}}
	indices := []uint32{pathNone, pathFull}
	var key xdpPath
	var index uint32
	each := v.tables.maps[mapPaths].Iterate()
	for each.Next(&key, &index) {
		half := len(key.Rule) / 2
		all = append(all, Path{Rules: ruleIDs(key.Rule[:]), Crossing: [2][]uint32{ruleIDs(key.Rule[:half]), ruleIDs(key.Rule[half:])}})
		indices = append(indices, index)
	}
	if err := each.Err(); err != nil {
		return nil, fmt.Errorf("list the paths: %w", err)
	}
	states := v.statesByPath()
	for i := range all {
		all[i].States = states[indices[i]]
		if all[i].Way, err = sumPath(v.tables.maps[mapPathCounters], indices[i], values); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (v *View) statesByPath() map[uint32]uint64 {
	states := make(map[uint32]uint64)
	for i := range v.live() {
		states[uint32(v.tables.states[i].Path)]++
	}
	return states
}

// ruleIDs returns the global ids of a path. The programs keep them plus 1.
func ruleIDs(rules []uint32) []uint32 {
	var ids []uint32
	for _, id := range rules {
		if id != 0 && !slices.Contains(ids, id-1) {
			ids = append(ids, id-1)
		}
	}
	return ids
}

func newPerCPU[T any]() ([]T, error) {
	n, err := bpfload.CPUs()
	if err != nil {
		return nil, err
	}
	return make([]T, n), nil
}

// sumCounter adds up a counter's values of all CPUs.
func sumCounter(m *bpfload.Map, index uint32, values []xdpCounter) (Counter, error) {
	var sum Counter
	if err := m.Lookup(index, values); err != nil {
		return sum, fmt.Errorf("read counter %d: %w", index, err)
	}
	for _, v := range values {
		sum.Packets += v.Packets
		sum.Bytes += v.Bytes
	}
	return sum, nil
}

// sumPath does the same for a path, by direction.
func sumPath(m *bpfload.Map, index uint32, values []xdpPathCounter) (sum [2]Counter, err error) {
	if err := m.Lookup(index, values); err != nil {
		return sum, fmt.Errorf("read the counter of path %d: %w", index, err)
	}
	for i := range values {
		for d, one := range values[i].Way {
			sum[d].Packets += one.Packets
			sum[d].Bytes += one.Bytes
		}
	}
	return sum, nil
}
