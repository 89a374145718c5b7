package htb

import (
	"time"

	"weir/internal/fw/shaper"
)

// What follows from a rate.
const (
	burstTime    = 4 * time.Millisecond // a class sends so long at once; timers may be late
	defaultRTT   = 100 * time.Millisecond
	codelTarget  = 20 // part of the round-trip time for which a packet may wait
	fifoPart     = 2  // part of it that a queue without CoDel may hold
	leastPackets = 10 // of such a queue
	floorPart    = 64 // what lower priorities get of what is there, in any case
	ethernet     = 14 // bytes of a frame's header, which the kernel counts
	tag          = 8  // bytes of two VLAN tags
)

// The quantum of a class: how many bytes it may borrow in turn.
const (
	leastQuantum = 1600
	mostQuantum  = 200_000 // the kernel warns beyond
)

// What an Ethernet frame takes on the wire beyond its IP packet, and the shortest.
const (
	ethernetOverhead = 38
	ethernetLeast    = 84
)

// frameMemory is the step of the memory that the kernel takes for a frame, in bytes.
const frameMemory = 1024

// A Plan is what is set up for a tree.
type Plan struct {
	Largest  uint32 // bytes of the longest frame; longer ones are cut
	Overhead uint16 // bytes that a frame takes beyond what the kernel counts
	MPU      uint16
	ATM      bool
	Default  int // index of the class for packets that name none; -1: none
	Classes  []Class
}

// A Class is a class of HTB. Rates are in bytes per second.
type Class struct {
	Parent     int // -1: the root
	Rate, Ceil uint64
	Burst      uint32 // bytes
	Priority   uint32 // 0 is first, 7 last
	Quantum    uint32 // bytes
	Leaf       *Leaf  // nil: it has classes below it
}

// A Leaf is a queue that holds packets.
type Leaf struct {
	Hosts    Hosts // whose packets share the class; the kernel needs CAKE for other values than NoHosts
	Interval time.Duration
	Target   time.Duration
	ECN      bool
	Limit    uint32 // packets; 0: the kernel's default
	Flows    uint32 // likewise
	Quantum  uint32 // bytes; likewise
	Bytes    uint32 // the most that it holds without CoDel
	Memory   uint32 // bytes of memory that CAKE may use; 0: the kernel's default
}

// Hosts says which hosts share a class, and how. The values are those of enum cake_flow modes
// (linux/pkt_sched.h).
type Hosts uint32

// NoHosts is for connections that share a class, whatever their hosts. With the others hosts do, and then the
// connections of each. Where packets leave TellHosts says more: there translation has made all hosts one.
const (
	NoHosts      Hosts = 0
	Sources      Hosts = 5 // CAKE_FLOW_DUAL_SRC
	Destinations Hosts = 6 // CAKE_FLOW_DUAL_DST
)

// mostCake is how many classes of a tree may have CAKE, which takes a megabyte for each.
const mostCake = 64

// hostsOf returns the hosts that share a class of a tree. They are behind the box: what goes to the Internet
// has them as sources, what comes from there as destinations.
func hostsOf(s *shaper.Shaper, c *shaper.Class) Hosts {
	switch {
	case !c.FairSaid || c.Fair == shaper.FairFlow:
		return NoHosts
	case s.In != s.Uplink:
		return Sources
	}
	return Destinations
}

// fewHosts leaves all classes of a tree without CAKE if there are too many.
func fewHosts(classes []Class) {
	n := 0
	for i := range classes {
		if classes[i].Leaf != nil && classes[i].Leaf.Hosts != NoHosts {
			n++
		}
	}
	for i := range classes {
		if n > mostCake && classes[i].Leaf != nil {
			classes[i].Leaf.Hosts = NoHosts
		}
	}
}

// PlanOf returns the plan for a tree on a device with an MTU. l3 says that its frames have no
// Ethernet header. What comes in has one where it waits.
func PlanOf(s *shaper.Shaper, mtu uint32, l3 bool) *Plan {
	p := &Plan{Default: s.DefaultClass(), Classes: make([]Class, len(s.Classes))}
	header := ethernet
	if l3 && !s.In {
		header = 0
	}
	p.Largest = mtu + uint32(header)
	if header > 0 {
		p.Largest += tag
	}
	overhead, mpu := int(s.Link.Overhead), s.Link.MPU
	if !s.Link.Known {
		overhead, mpu = 0, 0
		if !l3 {
			overhead, mpu = ethernetOverhead, ethernetLeast
		}
	}
	// The kernel cannot subtract. What it counts too much makes the line's packets slower, not faster.
	p.Overhead, p.MPU, p.ATM = uint16(max(overhead-header, 0)), mpu, s.Link.Cells == shaper.ATM
	rates(s, p.Classes)
	for i := range s.Classes {
		c, out := &s.Classes[i], &p.Classes[i]
		if s.Link.Cells == shaper.PTM { // 64 bytes of 65 are the packets'
			out.Rate, out.Ceil = max(out.Rate/65*64, shaper.MinRate), max(out.Ceil/65*64, shaper.MinRate)
		}
		out.Parent = c.Parent
		least := uint64(2 * (p.Largest + uint32(p.Overhead)))
		out.Burst = uint32(max(bytesIn(out.Ceil, burstTime), least))
		if c.Children == 0 {
			out.Leaf = leafOf(c, out.Ceil, p.Largest)
			out.Leaf.Hosts = hostsOf(s, c)
		}
	}
	fewHosts(p.Classes)
	orders(s, p.Classes)
	return p
}

func bytesIn(rate uint64, d time.Duration) uint64 { return uint64(float64(rate) * d.Seconds()) }

// leafOf returns the queue of a class.
func leafOf(c *shaper.Class, ceil uint64, largest uint32) *Leaf {
	rtt := c.RTT
	if rtt == 0 {
		rtt = defaultRTT
	}
	l := &Leaf{Interval: rtt, Target: rtt / codelTarget, ECN: c.ECN, Limit: c.Limit, Flows: c.Flows, Quantum: c.Quantum}
	// CoDel drops what waits longer than the target. One packet alone may take that long.
	if one := time.Duration(float64(largest) * 1.5 / float64(ceil) * float64(time.Second)); l.Target < one {
		l.Target = one
	}
	l.Bytes = uint32(max(bytesIn(ceil, rtt/fifoPart), uint64(leastPackets*largest)))
	if c.Limit > 0 {
		l.Bytes = min(l.Bytes, c.Limit*largest)
		l.Memory = c.Limit * memoryOf(largest)
	}
	return l
}

// memoryOf is about what the kernel takes for a frame of a length: its bytes and struct sk_buff, rounded up.
func memoryOf(length uint32) uint32 {
	return (length+frameMemory)/frameMemory*frameMemory + frameMemory
}

// rates sets the rates of all classes. HTB gives each class its rate first, and then lends what is
// left. So a class's rate is its guarantee and its part, by weight, of what the guarantees leave.
func rates(s *shaper.Shaper, out []Class) {
	sure := guaranteed(s)
	for i := range s.Classes {
		c := &s.Classes[i]
		if c.Parent < 0 {
			out[i].Rate, out[i].Ceil = c.Max.Bytes, c.Max.Bytes
		}
		if c.Children == 0 {
			continue
		}
		children := out[c.First : c.First+c.Children]
		for k := range children {
			one := &s.Classes[c.First+k]
			children[k].Ceil = out[i].Ceil
			if one.Max.Bytes > 0 {
				children[k].Ceil = min(one.Max.Bytes, out[i].Ceil)
			}
			children[k].Rate = min(sure[c.First+k], children[k].Ceil)
		}
		divide(s.Classes[c.First:c.First+c.Children], children, out[i].Rate)
		for k := range children {
			children[k].Rate = min(max(children[k].Rate, shaper.MinRate), max(children[k].Ceil, shaper.MinRate))
		}
	}
}

// guaranteed returns what each class is guaranteed: at least what those below it are, together.
func guaranteed(s *shaper.Shaper) []uint64 {
	sure, below := make([]uint64, len(s.Classes)), make([]uint64, len(s.Classes))
	for i := len(s.Classes) - 1; i >= 0; i-- {
		sure[i] = max(s.Classes[i].Min.Bytes, below[i])
		if p := s.Classes[i].Parent; p >= 0 {
			below[p] += sure[i]
		}
	}
	return sure
}

// divide divides among the classes below one what their guarantees leave of its rate. The highest
// priority gets it, but for a part that the others get in any case.
func divide(classes []shaper.Class, out []Class, rate uint64) {
	first := uint8(0)
	for i := range classes {
		first = max(first, classes[i].Priority)
		rate -= min(rate, out[i].Rate)
	}
	floor := uint64(0)
	for i := range classes {
		if classes[i].Priority < first {
			floor = rate / floorPart
		}
	}
	fill(classes, out, rate-floor, func(c *shaper.Class) bool { return c.Priority == first })
	fill(classes, out, floor, func(c *shaper.Class) bool { return c.Priority < first })
}

// fill divides an amount among some classes by weight. What one cannot have because of its max goes
// to the others.
func fill(classes []shaper.Class, out []Class, amount uint64, takes func(*shaper.Class) bool) {
	for amount > 0 {
		weights := uint64(0)
		for i := range classes {
			if takes(&classes[i]) && out[i].Rate < out[i].Ceil {
				weights += uint64(classes[i].Weight)
			}
		}
		if weights == 0 {
			return
		}
		given := uint64(0)
		for i := range classes {
			if takes(&classes[i]) && out[i].Rate < out[i].Ceil {
				part := min(uint64(float64(amount)*float64(classes[i].Weight)/float64(weights)), out[i].Ceil-out[i].Rate)
				out[i].Rate += part
				given += part
			}
		}
		if given == 0 { // a few bytes
			return
		}
		amount -= given
	}
}

// orders sets in which order, and in which proportions, classes borrow.
func orders(s *shaper.Shaper, out []Class) {
	levels := map[uint8]bool{}
	for i := range s.Classes {
		levels[s.Classes[i].Priority] = true
	}
	least := make(map[int]uint32) // the least weight below each class
	for i := range s.Classes {
		c := &s.Classes[i]
		if w, seen := least[c.Parent]; !seen || c.Weight < w {
			least[c.Parent] = max(c.Weight, 1)
		}
	}
	for i := range s.Classes {
		c := &s.Classes[i]
		for level := range levels {
			if level > c.Priority {
				out[i].Priority++
			}
		}
		out[i].Priority = min(out[i].Priority, 7)
		out[i].Quantum = uint32(min(uint64(leastQuantum)*uint64(c.Weight)/uint64(least[c.Parent]), mostQuantum))
		out[i].Quantum = max(out[i].Quantum, leastQuantum)
	}
}
