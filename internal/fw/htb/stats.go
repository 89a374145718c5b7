package htb

import (
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink/nl"
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
	Flows   uint32 // connections with packets that wait; 0 with bfifo

	app []byte
}

// Classes returns the counters of a device's classes, in the order of its plan. There are none if the
// device has none of weir's qdiscs.
func Classes(ifindex int) (all []Stats, err error) {
	m, err := Read()
	if err != nil {
		return nil, err
	}
	if h := m.below(ifindex, rootHandle|1); h == nil || h.kind != "htb" {
		return nil, nil
	}
	classes, err := dump(unix.RTM_GETTCLASS, ifindex)
	if err != nil {
		return nil, fmt.Errorf("read classes: %w", err)
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
			s.Drops, s.Backlog = q.stats.Drops, q.stats.Backlog
			switch q.kind {
			case leafCodel:
				s.Marked, s.Flows = codelOf(q)
			case leafCake:
				s.Marked, s.Flows = cakeOf(q)
			}
		}
		all[at] = s
	}
	return all, nil
}

// codelOf reads what fq_codel counts of its own (struct tc_fq_codel_xstats).
func codelOf(q *found) (marked uint64, flows uint32) {
	const qdisc, ecnMark, newFlows, oldFlows, size = 0, 12, 20, 24, 28
	if len(q.stats.app) < size || binary.NativeEndian.Uint32(q.stats.app) != qdisc {
		return 0, 0
	}
	number := func(at int) uint32 { return binary.NativeEndian.Uint32(q.stats.app[at:]) }
	return uint64(number(ecnMark)), number(newFlows) + number(oldFlows)
}

// Counters of CAKE (linux/pkt_sched.h).
const (
	cakeTins  = 10 // TCA_CAKE_STATS_TIN_STATS
	cakeMarks = 8  // TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS
	cakeFew   = 21 // TCA_CAKE_TIN_STATS_SPARSE_FLOWS
	cakeMany  = 22 // TCA_CAKE_TIN_STATS_BULK_FLOWS
	cakeDeaf  = 23 // TCA_CAKE_TIN_STATS_UNRESPONSIVE_FLOWS
)

// cakeOf reads what CAKE counts of its own, in its only class.
func cakeOf(q *found) (marked uint64, flows uint32) {
	all, err := nl.ParseRouteAttrAsMap(q.stats.app)
	if err != nil {
		return 0, 0
	}
	tins, err := nl.ParseRouteAttr(all[cakeTins].Value)
	if err != nil || len(tins) == 0 {
		return 0, 0
	}
	tin, err := nl.ParseRouteAttrAsMap(tins[0].Value)
	if err != nil {
		return 0, 0
	}
	number := func(at uint16) uint32 {
		if value := tin[at].Value; len(value) >= 4 {
			return binary.NativeEndian.Uint32(value)
		}
		return 0
	}
	return uint64(number(cakeMarks)), number(cakeFew) + number(cakeMany) + number(cakeDeaf)
}
