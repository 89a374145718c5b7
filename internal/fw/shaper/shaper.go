package shaper

import (
	"math/bits"
	"slices"
	"time"
)

// Limits of what one ruleset can define.
const (
	MaxShapers = 255            // trees; one for each interface and direction
	MaxClasses = 4095           // classes of all trees together
	MaxDepth   = 8              // levels of one tree, the root included
	MaxRate    = 12_500_000_000 // bytes per second: 100 Gbit/s
	MinRate    = 1_000          // bytes per second: 8 kbit/s
)

// A Shaper is the tree of classes of one interface and direction.
type Shaper struct {
	Interface string
	In        bool // what comes in at the interface; else what leaves by it
	Uplink    bool // a default route leaves by it; the dataplane does not need it
	Link      Link
	Engine    Engine  // as the file says
	Modem     bool    // a modem with a queue of its own is behind the interface
	Classes   []Class // parents before their children, siblings one after the other; [0] is the root
}

// A Link says what a packet takes on the line beyond its bytes, so that rates are those of
// the line.
type Link struct {
	Known    bool   // else the interface's own kind decides: Ethernet or none
	Overhead int16  // bytes added to the IP packet, -64 to 256
	MPU      uint16 // the least bytes of a packet with its overhead
	Cells    Cells
}

// Ethernet returns what packets take on Ethernet: MACs and EtherType, checksum, preamble and gap. The
// shortest frame takes 84 bytes. layers are the bytes of tags and of a session in front of each packet.
func Ethernet(layers int) Link {
	return Link{Known: true, Overhead: int16(14 + 4 + 8 + 12 + layers), MPU: 84}
}

// Cells is how a line cuts or codes packets.
type Cells uint8

// The kinds of lines.
const (
	Plain Cells = iota
	ATM         // 53 bytes on the line for 48 of the packet, the last cell filled
	PTM         // 65 bytes on the line for 64
)

// Fairness is between whom the packets of a class are shared.
type Fairness uint8

// The kinds of fairness.
const (
	FairHostFlow Fairness = iota // between hosts, then between a host's connections
	FairFlow                     // between connections
	FairHost                     // between hosts; a host's connections share one queue
)

// A Class is a queue of pf.conf. Packets are only in those without children.
type Class struct {
	Name     string
	Number   uint16 // what packets for it carry; 0: it takes none, for it has children
	Parent   int    // index; -1: the root
	Children int    // how many
	First    int    // index of the first child
	Default  bool

	Weight    uint32 // its part of what its parent has beyond all guarantees, among the children that want more; at least 1
	Min, Max  Rate   // guaranteed; never exceeded. Zero: none
	Bandwidth Rate   // as the file says, for people. Zero: it does not say one
	MinPart   bool   // Min is a part of the root's rate, and follows it
	MaxPart   bool   // likewise
	Priority  uint8  // 0 to 15; a higher one is served first, but for the floor
	Fair      Fairness
	FairSaid  bool // the file says so, here or above
	ECN       bool
	RTT       time.Duration // the round-trip time to which the depth fits; 0: the default
	Limit     uint32        // qlimit: the most packets of backlog; 0: the depth decides
	Flows     uint32        // what the file said; 0: nothing
	Quantum   uint32        // likewise
}

// A Rate is a number of bytes per second. For the first For of a busy period it is Burst.
type Rate struct {
	Bytes   uint64
	Burst   uint64
	For     time.Duration
	Percent uint8 // what the file says, for people; 0: it says the number
}

// At returns the same tree with another rate of its root, in bytes per second. What is a part of
// that rate follows it. Other rates stay, and so do weights.
func (s *Shaper) At(rate uint64) Shaper {
	at := *s
	at.Classes = slices.Clone(s.Classes)
	from := s.Classes[0].Max.Bytes
	for i := range at.Classes {
		c := &at.Classes[i]
		if c.MinPart {
			c.Min.Bytes = scaled(c.Min.Bytes, rate, from)
		}
		if c.MaxPart {
			c.Max.Bytes = scaled(c.Max.Bytes, rate, from)
		}
	}
	root := &at.Classes[0].Max
	root.Bytes, root.Burst = rate, scaled(root.Burst, rate, from)
	return at
}

// scaled returns bytes × to ÷ from.
func scaled(bytes, to, from uint64) uint64 {
	high, low := bits.Mul64(bytes, to)
	scaled, _ := bits.Div64(high, low, from) // at most MaxRate², divided by MinRate or more
	return scaled
}

// Name returns how a shaper is printed and chosen: the interface and, if it is not what
// leaves, the direction.
func (s *Shaper) Name() string {
	if s.In {
		return s.Interface + " in"
	}
	return s.Interface
}

// DefaultClass returns the index of the class for packets that name none of this tree; -1
// if there is none.
func (s *Shaper) DefaultClass() int {
	for i := range s.Classes {
		if s.Classes[i].Default {
			return i
		}
	}
	return -1
}

// Shares returns the bytes per second that each class gets if all want as much as they can get:
// its guarantee and its part by weight of what is left, or its limit.
func (s *Shaper) Shares() []uint64 {
	shares := make([]uint64, len(s.Classes))
	for i := range s.Classes {
		c := &s.Classes[i]
		if c.Parent < 0 {
			shares[i] = c.Max.Bytes
		}
		if c.Children > 0 {
			s.shareOut(shares, i)
		}
	}
	return shares
}

// shareOut gives the children of a class what it has. Priorities count as weights do: a lower one
// gets what the higher ones do not want.
func (s *Shaper) shareOut(shares []uint64, at int) {
	first, n := s.Classes[at].First, s.Classes[at].Children
	left := shares[at]
	for i := first; i < first+n; i++ {
		shares[i] = min(s.Classes[i].Min.Bytes, left)
		left -= shares[i]
	}
	for left > 0 {
		weights, given := uint64(0), uint64(0)
		for i := first; i < first+n; i++ {
			if c := &s.Classes[i]; c.Max.Bytes == 0 || shares[i] < c.Max.Bytes {
				weights += uint64(max(c.Weight, 1))
			}
		}
		if weights == 0 {
			return
		}
		for i := first; i < first+n; i++ {
			c := &s.Classes[i]
			if c.Max.Bytes != 0 && shares[i] >= c.Max.Bytes {
				continue
			}
			part := uint64(float64(left) * float64(max(c.Weight, 1)) / float64(weights))
			if c.Max.Bytes != 0 {
				part = min(part, c.Max.Bytes-shares[i])
			}
			shares[i] += part
			given += part
		}
		if given == 0 {
			return
		}
		left -= min(given, left)
	}
}
