package dataplane

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

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

// Maps of the queues. mapQueueData is a section that all programs of a generation share.
const (
	mapQueueData     = ".data.queue"
	mapQueueClasses  = "queue_classes"
	mapQueueCounters = "queue_counters"
	mapQueueHosts    = "queue_hosts"
	mapQueueActive   = "queue_active"
	mapQueueMembers  = "queue_members"
	mapQueueLosses   = "queue_losses"
	mapQueueRTTs     = "queue_rtts"
)

// queueMaps are the maps that go on if the queues are the same.
var queueMaps = []string{mapQueueData, mapQueueClasses, mapQueueCounters, mapQueueHosts, mapQueueActive, mapQueueLosses, mapQueueRTTs}

// mostQueueCores is QUEUE_CPUS.
const mostQueueCores = 1024

// Bits of an entry of queue_members.
const (
	queueMemberUrgent = 1 << 31 // of the key
	queueMemberPair   = 1 << 31 // of the value
)

// queueSize is how large the queues' maps are.
type queueSize struct {
	classes, members, slots, hosts, cores uint32
}

// queueSizes returns what the queues of a program need.
func queueSizes(p *ruleset.Program, states uint32) queueSize {
	n := queueSize{classes: 1, slots: 8, hosts: 8, cores: 1}
	for i := range p.Shapers {
		n.classes += uint32(len(p.Shapers[i].Classes))
	}
	if n.classes == 1 {
		return n
	}
	n.slots = min(max(uint32(1)<<bits.Len32(2*states-1), leastQueueSlots), mostQueueSlots)
	n.hosts = n.slots / slotsPerHost
	n.members = uint32(len(p.Shapers) * 2 * (len(p.QueuePairs) + roomForQueues))
	if cores, err := bpfload.CPUs(); err == nil { // else the kernel has refused far more
		n.cores = min(uint32(cores), mostQueueCores)
	}
	return n
}

// entries returns the sizes by map.
func (n *queueSize) entries() map[string]uint32 {
	return map[string]uint32{
		mapQueueClasses: n.classes, mapQueueMembers: max(n.members, 1),
		mapQueueCounters: n.slots + n.classes, mapQueueHosts: n.hosts + n.classes, mapQueueActive: n.slots + n.classes,
		mapQueueLosses: n.slots, mapQueueRTTs: n.classes, mapSteerFrames: n.cores,
	}
}

func (d *Dataplane) queueEntries() map[string]uint32 {
	sizes := queueSizes(d.config.Program, d.config.Options.MaxStates)
	return sizes.entries()
}

// roomForQueues is how many pairs of queues later rules may name, for each tree.
const roomForQueues = 256

// queuesNumber returns a number for what the queues of a program are; 0: it has none.
func queuesNumber(p *ruleset.Program) uint32 {
	if len(p.Shapers) == 0 {
		return 0
	}
	return numberOf(p.Shapers)
}

// counterFormat is the number of what the fields of struct queue_counter mean. Another one keeps the counters of a
// version with other fields from being taken over.
const counterFormat = 2

func numberOf(shapers []shaper.Shaper) uint32 {
	sum := fnv.New32a()
	fmt.Fprintf(sum, "%d %+v", counterFormat, shapers)
	return max(sum.Sum32(), 1)
}

// queuesShape is queuesNumber for what cannot change under traffic: all but the rates.
func queuesShape(p *ruleset.Program) uint32 {
	if len(p.Shapers) == 0 {
		return 0
	}
	shapers := slices.Clone(p.Shapers)
	for i := range shapers {
		shapers[i].Classes = slices.Clone(shapers[i].Classes)
		for k := range shapers[i].Classes {
			c := &shapers[i].Classes[k]
			c.Weight, c.Min, c.Max, c.Bandwidth, c.MinPart, c.MaxPart = 0, shaper.Rate{}, shaper.Rate{}, shaper.Rate{}, false, false
		}
	}
	return numberOf(shapers)
}

// openQueues opens the queues of the generation before, which go on: they are the same, but
// perhaps for their rates.
func (d *Dataplane) openQueues() error {
	sizes := queueSizes(d.config.Program, d.config.Options.MaxStates)
	entries := sizes.entries()
	d.queues = make(map[string]*bpfload.Map)
	for _, name := range queueMaps {
		m, err := bpfload.OpenMap(filepath.Join(liveGeneration(d.config.Dir), pinName(name)))
		if isMissing(err) { // an earlier version has copied the number of the queues, without them
			return d.closeQueues()
		}
		if err != nil {
			return errors.Join(err, d.closeQueues())
		}
		d.queues[name] = m
		if checkLayout(name, m) != nil || entries[name] != 0 && m.MaxEntries() != entries[name] {
			return d.closeQueues()
		}
	}
	return nil
}

func (d *Dataplane) closeQueues() error {
	var errs []error
	for _, m := range d.queues {
		errs = append(errs, m.Close())
	}
	d.queues = nil
	return errors.Join(errs...)
}

// fillQueues writes the queues of this generation, unless those of the one before go on.
func (d *Dataplane) fillQueues() error {
	if d.queues != nil {
		return fillAllMembers(d.objects.Maps[mapQueueMembers], d.config.Program)
	}
	return fillQueues(d.objects.Maps, d.config.Program, d.ledger.Generation)
}

// addMembers says to which classes the queues and pairs of other rules lead. Those of the rules
// before stay: states have their numbers.
func (d *Dataplane) addMembers(p *ruleset.Program) error {
	if len(p.Shapers) == 0 {
		return nil
	}
	err := fillAllMembers(d.objects.Maps[mapQueueMembers], p)
	if errors.Is(err, unix.E2BIG) || errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("more pairs of queues: %w", ErrNoRoom)
	}
	return err
}

// A QueueDevice is an interface or a device that carries its frames, with what packets take on the line there.
type QueueDevice struct {
	Name string
	Line shaper.Link
}

// SetQueues says which trees the packets of an interface meet, in each direction: those of the first of
// devices that has any. The first one is the interface itself; others carry its frames. Its own tree counts what
// packets take on its line, unless the queues say so. A tree of another device counts that device's line, and
// what the interface has in front of its packets beyond that, such as a tag.
func (d *Dataplane) SetQueues(ifindex int, devices ...QueueDevice) error {
	if len(d.config.Program.Shapers) == 0 || ifindex < 1 || ifindex >= MaxIfindex {
		return nil
	}
	var trees, more [2]uint8
	for _, in := range []bool{false, true} {
		number, at := d.queuesOf(devices, in)
		trees[asByte(in)] = uint8(number)
		if number == 0 || d.config.Program.Shapers[number-1].Link.Known {
			continue
		}
		if at > 0 {
			more[asByte(in)] = uint8(max(devices[0].Line.Overhead-devices[at].Line.Overhead, 0))
		} else if err := d.setLine(number, devices[0].Line); err != nil {
			return err
		}
	}
	return changeArray(d.objects.Maps[mapQueueData], func(data []xdpQueueSection) {
		place := &data[0].Places[ifindex]
		place.Out, place.In, place.OutMore, place.InMore = trees[0], trees[1], more[0], more[1]
	})
}

// Hold says whether a qdisc holds the packets of a tree, in the order of ruleset.Program.Shapers.
// Then the programs only name their classes. device is the index of the interface that has the
// qdisc. What leaves passes it on its way. There XDP goes on to count, in case a next hop is not up to
// date. core goes on with the packets that XDP passes to the stack; < 0: that where they come in.
func (d *Dataplane) Hold(tree int, held bool, device, core int) error {
	how := asByte(held)
	if held && core >= 0 && core <= MostHeldCore {
		if err := bpfload.OpenCore(d.objects.Maps[mapSteerFrames], uint32(core), roomForFrames); err != nil {
			return fmt.Errorf("hand frames to core %d: %w", core, err)
		}
		how = queueHeldBy + uint8(core)
	}
	return changeArray(d.objects.Maps[mapQueueData], func(data []xdpQueueSection) {
		s := &data[0].Shapers[tree+1]
		if held { // packets read held first
			s.Device = uint32(device)
		}
		s.Held = how
	})
}

// TreeRate returns the rate that a tree has been given instead of that of its rules, in bytes per
// second; 0: none.
func (d *Dataplane) TreeRate(tree int) (rate uint64, err error) {
	root := uint32(0)
	err = changeArray(d.objects.Maps[mapQueueData], func(data []xdpQueueSection) {
		if s := &data[0].Shapers[tree+1]; s.SetBy != uint8(ByRules) {
			root = s.First
		}
	})
	if err != nil || root == 0 {
		return 0, err
	}
	err = changeArray(d.objects.Maps[mapQueueClasses], func(raw []xdpQueueClass) { rate = queueClassOf(&raw[root]).Max })
	return rate, err
}

// queuesOf returns the number of the tree of the first device that has one, and which that is; 0: none has.
func (d *Dataplane) queuesOf(devices []QueueDevice, in bool) (number, at int) {
	for at, device := range devices {
		for i := range d.config.Program.Shapers {
			if s := &d.config.Program.Shapers[i]; s.Interface == device.Name && s.In == in {
				return i + 1, at
			}
		}
	}
	return 0, 0
}

// setLine sets what packets take on the line of a tree that does not say so.
func (d *Dataplane) setLine(number int, line shaper.Link) error {
	return changeArray(d.objects.Maps[mapQueueData], func(data []xdpQueueSection) {
		data[0].Shapers[number].Overhead, data[0].Shapers[number].Mpu = line.Overhead, line.MPU
	})
}

// fillQueues writes the trees of a program. epoch differs from that of the trees before.
func fillQueues(maps map[string]*bpfload.Map, p *ruleset.Program, epoch uint32) error {
	next := uint32(1)
	for i := range p.Shapers {
		s := &p.Shapers[i]
		number := uint32(i + 1)
		if err := fillArray(maps[mapQueueClasses], next, rawClasses(s, number, next), func(c *xdpQueueClass) xdpQueueClass { return *c }); err != nil {
			return err
		}
		if err := changeArray(maps[mapQueueData], func(data []xdpQueueSection) { data[0].Shapers[number] = rawShaper(s, next, epoch) }); err != nil {
			return err
		}
		next += uint32(len(s.Classes))
	}
	return fillAllMembers(maps[mapQueueMembers], p)
}

// fillAllMembers says to which classes the numbers of rules lead.
func fillAllMembers(m *bpfload.Map, p *ruleset.Program) error {
	next := uint32(1)
	for i := range p.Shapers {
		if err := fillMembers(m, &p.Shapers[i], uint32(i+1), next, p); err != nil {
			return err
		}
		next += uint32(len(p.Shapers[i].Classes))
	}
	return nil
}

func rawShaper(s *shaper.Shaper, first, epoch uint32) xdpQueueShaper {
	line := s.Link
	if !line.Known {
		line = shaper.Ethernet(0)
	}
	raw := xdpQueueShaper{
		Overhead: line.Overhead, Mpu: line.MPU, Cells: uint8(s.Link.Cells), In: asByte(s.In),
		First: first, Classes: uint32(len(s.Classes)), Epoch: epoch,
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
	sure := guarantees(s)
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
		raw.Shaper, raw.Weight, raw.Priority = number, queueWeight(s, i), c.Priority
		raw.Fair, raw.Ecn = uint8(c.Fair), asByte(c.ECN)
		raw.Window = uint32(rtt / time.Millisecond)
		raw.Ceiling = max(ceilings[i]/1000, 1)
		raw.Depth = max(uint64(float64(ceilings[i])*(rtt*(queueDepth/queueRTT)).Seconds()), leastQueueDepth)
		raw.Min, raw.Max = rawRate(sure[i]), rawRate(c.Max)
		raw.Level, raw.Fresh = raw.Ceiling<<queueFine, int64(max(raw.Ceiling*queueFreshMS, queueFresh))
	}
	return all
}

// guarantees returns what each class is guaranteed: at least what those below it are, together.
func guarantees(s *shaper.Shaper) []shaper.Rate {
	sure := make([]shaper.Rate, len(s.Classes))
	below := make([]uint64, len(s.Classes))
	for i := len(s.Classes) - 1; i >= 0; i-- {
		c := &s.Classes[i]
		sure[i] = c.Min
		if sure[i].Bytes < below[i] {
			sure[i].Bytes = below[i]
			sure[i].Burst = max(sure[i].Burst, below[i])
		}
		if c.Parent >= 0 {
			below[c.Parent] += sure[i].Bytes
		}
	}
	return sure
}

// mostQueueWeight is the most that a weight may be: products with amounts have 64 bits.
const mostQueueWeight = 1 << 16

// queueWeight returns a class's weight, in proportion to those of its parent's other children.
func queueWeight(s *shaper.Shaper, at int) uint32 {
	most, c := uint32(1), &s.Classes[at]
	for i := range s.Classes {
		if s.Classes[i].Parent == c.Parent {
			most = max(most, s.Classes[i].Weight)
		}
	}
	if most <= mostQueueWeight {
		return max(c.Weight, 1)
	}
	return max(uint32(uint64(c.Weight)*mostQueueWeight/uint64(most)), 1)
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
