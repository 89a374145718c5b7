package dataplane

import (
	"fmt"
	"math/bits"
	"time"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/shaper"
)

// Counters of connections in queues. One takes 128 bytes, and there are twice as many as
// connections, so that each finds a free one.
const (
	leastQueueSlots = 1 << 12
	mostQueueSlots  = 1 << 18
	slotsPerHost    = 4
)

// The depth of a connection's queue and the window in which its bursts are judged, for
// round-trip times of up to queueRTT. They grow with longer ones.
const (
	queueRTT        = 100 * time.Millisecond
	queueDepth      = 8 * queueRTT
	leastQueueDepth = 32 << 10 // bytes
)

// What bpf/config.h says of amounts.
const (
	queueFine    = 16    // bits of a fine amount below the point
	queueFresh   = 65536 // bytes that new connections may take in a run of the timer
	queueFreshMS = 4     // and milliseconds at the class's rate
)

// mapQueueData is the section that all programs of a generation share.
const mapQueueData = ".data.queue"

// Bits of an entry of queue_members.
const (
	queueMemberUrgent = 1 << 31 // of the key
	queueMemberPair   = 1 << 31 // of the value
)

// queueSizes returns the sizes of the queues' maps, and the settings that go with them.
func queueSizes(p *ruleset.Program, states uint32) (entries map[string]uint32, slots, hosts uint32) {
	classes := uint32(1)
	for i := range p.Shapers {
		classes += uint32(len(p.Shapers[i].Classes))
	}
	if classes == 1 {
		return map[string]uint32{}, 8, 8
	}
	slots = min(max(uint32(1)<<bits.Len32(2*states-1), leastQueueSlots), mostQueueSlots)
	hosts = slots / slotsPerHost
	members := uint32(len(p.Shapers) * (2*len(p.QueuePairs) + roomForQueues))
	return map[string]uint32{
		"queue_classes": classes, "queue_members": members,
		"queue_counters": slots + classes, "queue_hosts": hosts + classes, "queue_active": slots + classes,
	}, slots, hosts
}

// roomForQueues is how many pairs of queues later rules may name, for each tree.
const roomForQueues = 256

// fillQueues writes the trees of a program. epoch differs from that of the trees before.
func fillQueues(maps map[string]*bpfload.Map, p *ruleset.Program, epoch uint32) error {
	next := uint32(1)
	for i := range p.Shapers {
		s := &p.Shapers[i]
		number := uint32(i + 1)
		if err := fillArray(maps["queue_classes"], next, rawClasses(s, number, next), func(c *xdpQueueClass) xdpQueueClass { return *c }); err != nil {
			return err
		}
		if err := changeArray(maps[mapQueueData], func(data []xdpQueueSection) { data[0].Shapers[number] = rawShaper(s, next, epoch) }); err != nil {
			return err
		}
		if err := fillMembers(maps["queue_members"], s, number, next, p); err != nil {
			return err
		}
		next += uint32(len(s.Classes))
	}
	return nil
}

// What an Ethernet frame takes on the wire beyond its IP packet: MACs and EtherType, checksum,
// preamble and gap. The shortest frame takes 84 bytes.
const (
	ethernetOverhead = 14 + 4 + 8 + 12
	ethernetLeast    = 84
)

func rawShaper(s *shaper.Shaper, first, epoch uint32) xdpQueueShaper {
	raw := xdpQueueShaper{
		Overhead: s.Link.Overhead, Mpu: s.Link.MPU, Cells: uint8(s.Link.Cells), In: asByte(s.In),
		First: first, Classes: uint32(len(s.Classes)), Epoch: epoch,
	}
	if !s.Link.Known {
		raw.Overhead, raw.Mpu = ethernetOverhead, ethernetLeast
	}
	if at := s.DefaultClass(); at >= 0 {
		raw.Fallback = first + uint32(at)
	}
	return raw
}

// rawClasses returns the classes of a tree whose root has the index first.
func rawClasses(s *shaper.Shaper, number, first uint32) []xdpQueueClass {
	all := make([]xdpQueueClass, len(s.Classes))
	ceilings := make([]uint64, len(s.Classes))
	for i := range s.Classes {
		c, raw := &s.Classes[i], &all[i]
		rtt := max(c.RTT, queueRTT)
		ceilings[i] = c.Max.Bytes
		if c.Parent >= 0 {
			raw.Parent = first + uint32(c.Parent)
			if above := ceilings[c.Parent]; c.Max.Bytes == 0 || above < c.Max.Bytes {
				ceilings[i] = above
			}
		}
		if c.Children > 0 {
			raw.Child, raw.Children = first+uint32(c.First), uint32(c.Children)
		}
		raw.Shaper, raw.Weight, raw.Priority = number, max(c.Weight, 1), c.Priority
		raw.Fair, raw.Ecn = uint8(c.Fair), asByte(c.ECN)
		raw.Window = uint32(rtt / time.Millisecond)
		raw.Ceiling = max(ceilings[i]/1000, 1)
		raw.Depth = max(uint64(float64(ceilings[i])*(rtt*time.Duration(queueDepth/queueRTT)).Seconds()), leastQueueDepth)
		raw.Min, raw.Max = rawRate(c.Min), rawRate(c.Max)
		raw.Level, raw.Fresh = raw.Ceiling<<queueFine, int64(max(raw.Ceiling*queueFreshMS, queueFresh))
	}
	return all
}

// rawRate returns a rate in 2^-24 bytes per microsecond.
func rawRate(r shaper.Rate) xdpQueueRate {
	fine := func(bytes uint64) uint64 { return bytes << 24 / 1_000_000 }
	raw := xdpQueueRate{Rate: fine(r.Bytes)}
	if r.For > 0 {
		raw.Burst, raw.First = fine(r.Burst), uint32(r.For/time.Millisecond)
	}
	return raw
}

// fillMembers says to which class of a tree the numbers of rules lead.
func fillMembers(m *bpfload.Map, s *shaper.Shaper, number, first uint32, p *ruleset.Program) error {
	classes := make(map[string]uint32)
	for i := range s.Classes {
		if s.Classes[i].Children == 0 {
			classes[s.Classes[i].Name] = first + uint32(i)
		}
	}
	put := func(key, class uint32) error {
		if class == 0 {
			return nil
		}
		if err := m.Put(key, class); err != nil {
			return fmt.Errorf("put a queue of %s: %w", s.Name(), err)
		}
		return nil
	}
	for queue, pair := range p.QueuePairs {
		key := number<<16 | uint32(queue)
		class, urgent := classes[p.Queues[pair.Queue]], classes[p.Queues[pair.Ack]]
		if pair.Queue == pair.Ack || urgent == 0 {
			if err := put(key, class); err != nil {
				return err
			}
			continue
		}
		if class == 0 {
			class = urgent
		}
		if err := put(key, class|queueMemberPair); err != nil {
			return err
		}
		if err := put(key|queueMemberUrgent, urgent); err != nil {
			return err
		}
	}
	return nil
}
