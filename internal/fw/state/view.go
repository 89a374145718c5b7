package state

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Protocol numbers that are printed in a special way.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

// A Context holds what printing a state needs to know about the present.
type Context struct {
	Now       Tick
	Timeouts  Timeouts                                 // in force, with adaptive scaling applied
	Rule      func(global uint32) (r RuleRef, ok bool) // in the ruleset in force; ok is false for an earlier ruleset
	Interface func(index uint16) string
	Labels    func(global uint32) []string // of a rule, also of an earlier ruleset
	Leaves    func(nextHop uint16) string  // the interface of a next hop; "": none
	Gateway   func(nextHop uint16) netip.Addr
	Lost      func(s *State) [2]Loss     // by direction, what its packets have lost in queues; nil: nobody knows
	Queue     func(number uint16) string // what set queue names: a queue, or "a, b"; "" for a number of an earlier ruleset
}

// A View is a state for people and programs: the JSON form of `weir states`, and the
// source of its printed forms.
type View struct {
	ID        uint32        `json:"id"`
	Handle    Handle        `json:"handle"`    // unlike ID, no later state has it
	Interface string        `json:"interface"` // "all", or the interface of link-local addresses, or those that a bound state is bound to
	Proto     string        `json:"proto"`     // name, or number
	Direction Direction     `json:"direction"`
	Src       End           `json:"src"`
	Dst       End           `json:"dst"`
	Phase     string        `json:"phase"` // names the timeout
	Age       time.Duration `json:"age_ns"`
	Expires   time.Duration `json:"expires_ns"`
	RuleIn    *RuleRef      `json:"rule_in,omitempty"`
	RuleOut   *RuleRef      `json:"rule_out,omitempty"`
	Labels    []string      `json:"labels,omitempty"`   // of both rules
	Leaves    []string      `json:"leaves,omitempty"`   // the interfaces that forwarded packets leave by
	Gateways  []netip.Addr  `json:"gateways,omitempty"` // the next hops that they are sent to: gateways, or the ends themselves
	Options   bool          `json:"allow_opts,omitempty"`
	Scrub     string        `json:"scrub,omitempty"`         // in the form of scrub (…), of the first packet's direction
	ScrubBack string        `json:"scrub_replies,omitempty"` // of replies, if it is not the same; "no": they are not scrubbed
	Mark      string        `json:"mark,omitempty"`          // set by rules, in the form of set mark: 0x2/0xf
}

// A Handle identifies a state, in hexadecimal: when it was made, and where it is. 32 bits
// each.
type Handle uint64

// MarshalText returns 16 digits, as pfctl prints an id.
func (h Handle) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(h)), nil }

// UnmarshalText reads a number in hexadecimal.
func (h *Handle) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(string(text), "0x"), 16, 64)
	if err != nil {
		return errors.New("an id is a number in hexadecimal, as weir states -vv prints it")
	}
	*h = Handle(n)
	return nil
}

// A Direction says which crossings a state covers.
type Direction string

// Directions of states.
const (
	DirectionIn      Direction = "in"      // to the box itself
	DirectionOut     Direction = "out"     // from the box itself
	DirectionForward Direction = "forward" // through the box
)

// An End is one side of a connection. Src is the side that sent the first packet.
type End struct {
	Addr     netip.Addr `json:"addr"` // from the first packet
	Port     uint16     `json:"port"`
	NewAddr  netip.Addr `json:"new_addr,omitzero"` // after translation, if any
	NewPort  uint16     `json:"new_port,omitempty"`
	State    string     `json:"state"`
	Packets  uint64     `json:"packets"` // sent by this end
	Bytes    uint64     `json:"bytes"`
	Prio     string     `json:"prio,omitempty"`           // of the packets that it sends, in the form of set prio
	Queue    string     `json:"queue,omitempty"`          // likewise, in the form of set queue
	Lost     *Loss      `json:"lost_in_queues,omitempty"` // of the packets that it has sent
	Sequence *Sequence  `json:"sequence,omitempty"`       // TCP only
}

// A Loss is what packets have lost in their queues since these were loaded.
type Loss struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"` // on the line
}

// A Sequence is the window in which an end may send.
type Sequence struct {
	Low    uint32 `json:"low"`
	Size   uint32 `json:"size"`
	Scale  uint8  `json:"wscale"`
	Scaled bool   `json:"scaled"` // both ends offered a scale
}

// A RuleRef is a rule by number. Old means that its ruleset has been replaced.
type RuleRef struct {
	Nr   int    `json:"nr"`
	List string `json:"list,omitempty"` // nat, rdr or binat: the number is of a rule in FreeBSD's list of that name
	Old  bool   `json:"old,omitempty"`
}

// View returns the state's form for people and programs.
func (s *State) View(c *Context) View {
	v := View{
		ID:        s.Index,
		Handle:    Handle(uint64(s.Created)<<32 | uint64(s.Index)),
		Interface: "all",
		Proto:     Protocol(s.Tuple[0].Proto),
		Direction: s.direction(),
		Phase:     s.Phase.String(),
		Age:       ticks(int64(c.Now.Since(s.Created))),
		Expires:   ticks(s.Expires(c.Now, &c.Timeouts)),
		RuleIn:    c.rule(s.RuleIn),
		RuleOut:   c.rule(s.RuleOut),
		Options:   s.Flags&Options != 0,
	}
	v.Labels, v.Leaves, v.Gateways = s.labels(c), s.leaves(c), s.gateways(c)
	v.Scrub, v.ScrubBack = s.scrubs()
	if zone := s.Tuple[0].Zone; zone != 0 && zone != zoneSocket {
		v.Interface = c.Interface(zone)
	}
	v.bind(s, c)
	if s.Flags&Marked != 0 {
		v.Mark = fmt.Sprintf("%#x/%#x", s.Mark, s.MarkMask[0]|s.MarkMask[1])
	}
	forth, back := s.Tuple[0], s.Tuple[1]
	v.Src = s.end(c, 0, forth.Src, forth.SPort, back.Dst, back.DPort)
	v.Dst = s.end(c, 1, forth.Dst, forth.DPort, back.Src, back.SPort)
	if c.Lost != nil {
		lost := c.Lost(s)
		v.Src.lose(lost[0])
		v.Dst.lose(lost[1])
	}
	return v
}

// labels returns the labels of the rules that decided, each once.
func (s *State) labels(c *Context) []string {
	var all []string
	for i, global := range []uint32{s.RuleIn, s.RuleOut} {
		if global == 0 || c.Labels == nil || i == 1 && global == s.RuleIn {
			continue
		}
		for _, label := range c.Labels(global) {
			if !slices.Contains(all, label) {
				all = append(all, label)
			}
		}
	}
	return all
}

// leaves returns the interfaces that packets leave by, each once.
func (s *State) leaves(c *Context) []string { return ofNextHops(s, c.Leaves) }

// gateways returns the next hops that packets are sent to, each once.
func (s *State) gateways(c *Context) []netip.Addr { return ofNextHops(s, c.Gateway) }

// ofNextHops returns what a function knows of the state's next hops, each once.
func ofNextHops[T comparable](s *State, of func(nextHop uint16) T) []T {
	var all []T
	var none T
	for _, hop := range s.NextHops {
		if hop < 2 || of == nil {
			continue
		}
		if one := of(hop); one != none && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// bind names the interfaces of a bound state. pf has a state for each crossing, and prints
// the interface of each; here they are in one line.
func (v *View) bind(s *State, c *Context) {
	var sides []string
	for _, at := range s.Bound {
		switch {
		case at[0] == 0:
		case at[1] == at[0]:
			sides = append(sides, c.Interface(at[0]))
		default:
			sides = append(sides, c.Interface(at[0])+"|"+c.Interface(at[1]))
		}
	}
	switch {
	case len(sides) == 0:
	case s.Bound[0][0] == 0 && s.Flags&In != 0:
		v.Interface = "all," + sides[0]
	case s.Bound[1][0] == 0 && s.Flags&Out != 0:
		v.Interface = sides[0] + ",all"
	default:
		v.Interface = strings.Join(sides, ",")
	}
}

func (s *State) end(c *Context, d int, addr netip.Addr, port uint16, newAddr netip.Addr, newPort uint16) End {
	f := &s.Flow[d]
	e := End{
		Addr: addr, Port: port,
		State:   f.Peer.name(s.Tuple[0].Proto),
		Packets: f.Packets, Bytes: f.Bytes,
		Prio: f.Prio.String(), Queue: c.queue(s.Queues[d]),
	}
	if newAddr != addr || newPort != port {
		e.NewAddr, e.NewPort = newAddr, newPort
	}
	if s.Tuple[0].Proto == protoTCP {
		e.Sequence = s.sequence(d)
	}
	return e
}

func (e *End) lose(l Loss) {
	if l.Packets > 0 {
		e.Lost = &l
	}
}

// sequence returns the window in which end d may send: up to what its peer granted, or
// else up to what its own first packet allowed.
func (s *State) sequence(d int) *Sequence {
	f, peer := &s.Flow[d], &s.Flow[1-d]
	high := f.SeqHi
	if peer.Flags&FlowGranted != 0 && int32(peer.Grant-high) > 0 {
		high = peer.Grant
	}
	return &Sequence{
		Low: f.SeqLo, Size: high - f.SeqLo, Scale: f.WScale,
		Scaled: f.Flags&peer.Flags&FlowScaled != 0,
	}
}

func (s *State) direction() Direction {
	switch s.Flags & (In | Out) {
	case In:
		return DirectionIn
	case Out:
		return DirectionOut
	}
	return DirectionForward
}

func (c *Context) rule(global uint32) *RuleRef {
	if global == 0 {
		return nil
	}
	r, ok := c.Rule(global)
	if !ok {
		return &RuleRef{Old: true}
	}
	return &r
}

// queue returns what set queue names, "old" if the ruleset that named it is gone.
func (c *Context) queue(number uint16) string {
	if number == 0 {
		return ""
	}
	name := c.Queue(number)
	switch {
	case name == "":
		return oldRuleset
	case strings.Contains(name, ", "):
		return "(" + name + ")"
	}
	return name
}

// ticks converts a span. A negative one becomes 0: the clock was read a moment apart.
func ticks(n int64) time.Duration {
	return time.Duration(max(n, 0)) * (time.Second / TicksPerSecond)
}

// Protocol returns a protocol's name from OpenBSD's /etc/protocols if it can pass a
// gateway, else its number.
func Protocol(proto uint8) string {
	switch proto {
	case protoICMP:
		return "icmp"
	case 2:
		return "igmp"
	case 4:
		return "ipencap"
	case protoTCP:
		return "tcp"
	case protoUDP:
		return "udp"
	case 41:
		return "ipv6"
	case 47:
		return "gre"
	case 50:
		return "esp"
	case 51:
		return "ah"
	case protoICMPv6:
		return "ipv6-icmp"
	case 89:
		return "ospf"
	case 112:
		return "carp"
	case 132:
		return "sctp"
	case 136:
		return "udplite"
	}
	return strconv.Itoa(int(proto))
}
