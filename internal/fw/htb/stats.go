package htb

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Stats are the counters of a class. Bytes are those of frames, without what they take on the line
// beyond.
type Stats struct {
	Bytes   uint64
	Packets uint64
	Drops   uint64 // packets
	Marked  uint64 // packets that tell of congestion
	Backlog uint64 // bytes that wait
	Flows   uint32 // connections with packets that wait; 0 without fq_codel

	app []byte
}

// Classes returns the counters of a device's classes, in the order of its plan, and the kind of the
// queues that hold its packets. There are none if the device has none of weir's qdiscs.
func Classes(ifindex int) (all []Stats, leaf string, err error) {
	m, err := Read()
	if err != nil {
		return nil, "", err
	}
	if h := m.below(ifindex, rootHandle|1); h == nil || h.kind != "htb" {
		return nil, "", nil
	}
	classes, err := dump(unix.RTM_GETTCLASS, ifindex)
	if err != nil {
		return nil, "", fmt.Errorf("read classes: %w", err)
	}
	for i := range classes {
		c := &classes[i]
		at := int(c.handle&0xffff) - 1
		if c.kind != "htb" || c.handle&0xffff_0000 != classHandle || at < 0 {
			continue
		}
		for len(all) <= at {
			all = append(all, Stats{})
		}
		s := c.stats
		s.Drops, s.app = 0, nil
		if q := m.below(ifindex, c.handle); q != nil { // the class does not count what CoDel drops
			leaf = q.kind
			s.Drops, s.Backlog = q.stats.Drops, q.stats.Backlog
			s.Marked, s.Flows = codelOf(q)
		}
		all[at] = s
	}
	return all, leaf, nil
}

// codelOf reads what fq_codel counts of its own (struct tc_fq_codel_xstats).
func codelOf(q *found) (marked uint64, flows uint32) {
	const qdisc, ecnMark, newFlows, oldFlows, size = 0, 12, 20, 24, 28
	if q.kind != leafCodel || len(q.stats.app) < size || binary.NativeEndian.Uint32(q.stats.app) != qdisc {
		return 0, 0
	}
	number := func(at int) uint32 { return binary.NativeEndian.Uint32(q.stats.app[at:]) }
	return uint64(number(ecnMark)), number(newFlows) + number(oldFlows)
}
