package model

import (
	"iter"
	"net/netip"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// Hook is where a frame is seen.
type Hook uint8

// Hooks. A frame is judged by one of the first two, never by both.
const (
	XDP Hook = iota
	TCXIngress
	TCXEgress
)

// Bits of the mark by which weir's hooks know each other's packets (bpf/config.h).
const (
	MarkMask     = 0xf0000000
	MarkMagic    = 0xa0000000
	MarkReply    = 0x08000000 // the packet goes in direction 1
	MarkRedirect = 0x04000000 // TCX ingress shall redirect it, or did
	MarkState    = 0x03ffffff // index of the state, 0: none

	MarkMulticast = MarkMagic | MarkReply // the stack routes it by multicast; its way out is judged at TCXEgress
)

// A Frame is what a hook is shown.
type Frame struct {
	Hook      Hook
	Interface uint32 // index of the interface whose hook runs
	From      uint32 // TCXEgress: where the stack received it; 0: the box's own
	Mark      uint32
	Bytes     []byte
}

// A Verdict says where a frame goes.
type Verdict uint8

// Verdicts.
const (
	Drop     Verdict = iota
	Up               // to the stack
	Redirect         // to the wire of Interface
	Out              // TCXEgress: out of the interface it was seen on
	Answer           // dropped; an answer goes back out of Interface, or for TCXEgress in by it
)

// An Outcome is a frame's fate.
type Outcome struct {
	Verdict   Verdict
	Reason    reason.Reason
	Interface uint32   // Redirect
	At        uint32   // the interface that the frame was judged on; 0: none
	Mark      uint32   // 0: none set
	Frame     []byte   // as it goes on, or the answer; nil for Drop
	Judged    bool     // a packet that went the whole way: XDP tells TCX ingress, which judges it no more
	Length    int      // bytes that are counted with it: of the IP packet, or of a frame that holds none
	Records   []Record // what rules have logged of it, in order
}

// A Model judges frames one after the other.
type Model struct {
	box      *Box
	rules    *resolve.Ruleset
	ruleBase uint32 // global number of rule 0
	unloaded bool
	chance   func() bool // decides whether a rule with a probability matches; nil: it does

	now       state.Tick
	timeouts  state.Timeouts
	states    []*connection
	fragments []*fragmented
	handed    map[state.Tuple]passage
	bucket    bucket
	answers   Answers

	turns        map[turn]uint64
	asked        map[uint32]state.Tick // when a DHCP client of the box last asked, by interface
	way, ways    uint64                // of AskAll: which of as many next hops is meant
	paths        map[Path]Counter
	ruleCounters []RuleCounter
}

// A connection is a state and what of it only the model knows by name.
type connection struct {
	state.State
	path Path
	tag  string // of the side that keeps state
	dead bool
	ends [2]bool // the box itself is where packets of the direction go
}

// A passage is a direction of a connection.
type passage struct {
	c *connection
	d int
}

// New returns a model without states.
func New(box *Box, rules *resolve.Ruleset, ruleBase uint32) *Model {
	m := &Model{
		box: box, rules: rules, ruleBase: ruleBase,
		handed: make(map[state.Tuple]passage), turns: make(map[turn]uint64), asked: make(map[uint32]state.Tick), paths: make(map[Path]Counter), ruleCounters: make([]RuleCounter, len(rules.Rules)),
	}
	m.SetClock(0)
	return m
}

// SetClock sets the time, and scales the timeouts by the states there are then.
func (m *Model) SetClock(now state.Tick) {
	o := &m.rules.Options
	m.now = now
	m.timeouts = state.TimeoutsOf(&o.Timeouts).
		Adapt(uint32(len(m.states)), o.Timeouts.AdaptiveStart, o.Timeouts.AdaptiveEnd)
}

// SetUnloaded tells the model that its rules are the built-in ones.
func (m *Model) SetUnloaded(unloaded bool) { m.unloaded = unloaded }

// Sweep releases what is dead or has expired.
func (m *Model) Sweep() {
	var kept []*connection
	for _, c := range m.states {
		if !m.expired(c) && !c.dead {
			kept = append(kept, c)
		} else {
			c.dead = true // fragments may still point to it
		}
	}
	m.states = kept
}

// States returns the live states in the order of their creation, expired ones
// that no packet has met included.
func (m *Model) States() []state.State {
	live := make([]state.State, 0, len(m.states))
	for s := range m.Live() {
		live = append(live, *s)
	}
	return live
}

// Live goes through the same states without copying them. They are the model's
// and not to be changed.
func (m *Model) Live() iter.Seq[*state.State] {
	return func(yield func(*state.State) bool) {
		for _, c := range m.states {
			if !c.dead && !yield(&c.State) {
				return
			}
		}
	}
}

// Judge sends a frame through the steps of docs/packet-path.md. made is the
// state that the dataplane made for it, nil if none or not known.
func (m *Model) Judge(f *Frame, made *state.State) Outcome {
	i := m.box.byIndex(f.Interface)
	if i == nil {
		return Outcome{Verdict: Drop, Reason: reason.Interface}
	}
	f = &Frame{Hook: f.Hook, Interface: f.Interface, From: f.From, Mark: f.Mark, Bytes: append([]byte(nil), f.Bytes...)}
	answer := f.Hook == TCXIngress && f.Mark == MarkAnswer
	if f.Hook != TCXEgress {
		f.Mark = 0 // marks are weir's to give: nothing comes in with one
	}
	marked := f.Mark&MarkMask == MarkMagic
	// programs of the box can set any mark, and tunnels keep that of what they carry
	whole := f.From != 0 || i.Loopback && f.Mark == MarkAnswer
	if marked && f.Mark&MarkRedirect != 0 && whole {
		return f.end(reason.Marked)
	}
	p, why := parse(f, i, m.box)
	if why != nil {
		o := f.end(*why)
		o.At = p.iface.Index
		return o
	}
	if answer && p.answersBox() {
		return f.end(reason.Marked) // the box's own answer to itself
	}
	p.from = m.receivedBy(f, p)
	o := m.judge(f, p, made)
	o.At, o.Length, o.Judged, o.Records = p.iface.Index, p.length(), true, p.records
	return o
}

// receivedBy returns where a frame came into the box; nil for the box's own.
func (m *Model) receivedBy(f *Frame, p *packet) *Interface {
	if f.Hook == TCXEgress {
		return m.box.byIndex(f.From)
	}
	return p.iface
}

// judge is the way of a frame that holds a packet, from step 2 on.
func (m *Model) judge(f *Frame, p *packet, made *state.State) Outcome {
	marked := f.Mark&MarkMask == MarkMagic
	switch forwarded := f.Hook == TCXEgress && f.From != 0; {
	case forwarded && f.Mark == MarkMulticast:
		p.tuple.Zone = uint16(f.Interface) // each interface has a state of its own for it
	case forwarded && marked:
		return m.marked(f, p)
	case forwarded:
		return p.drop(reason.Guard)
	}
	switch {
	case p.fragment == fragmentLater:
		return m.followFirst(p)
	case p.icmpError && p.fragment == fragmentNone:
		return m.icmpErrorOf(p, made)
	}
	return m.lookUp(p, made)
}

// lookUp is step 2.
func (m *Model) lookUp(p *packet, made *state.State) Outcome {
	c, d := m.find(p.tuple)
	if c == nil || !c.mayCross(d, p.egress()) {
		return m.admit(p, c, d, made)
	}
	switch m.track(p, c, d) {
	case over:
		c.dead = true
		return m.admit(p, nil, 0, made)
	case mismatch:
		return p.drop(reason.StateMismatch)
	}
	o := m.onward(p, c, d, reason.State, false)
	m.logCarried(p, &o)
	return o
}

// find returns the live state that holds a tuple, and the direction. One that
// has expired dies of it.
func (m *Model) find(t state.Tuple) (*connection, int) {
	for _, c := range m.states {
		for d := range c.Tuple {
			if c.dead || c.Tuple[d] != t {
				continue
			}
			if m.expired(c) {
				c.dead = true
				continue
			}
			return c, d
		}
	}
	return nil, 0
}

func (m *Model) expired(c *connection) bool { return c.Expires(m.now, &m.timeouts) <= 0 }

// crossingNeeded returns the crossing that packets of direction d need to have
// behind them where they are seen.
func crossingNeeded(d int, egress bool) state.Flags {
	if (d == 0) != egress {
		return state.In
	}
	return state.Out
}

func (c *connection) mayCross(d int, egress bool) bool {
	return c.Flags&crossingNeeded(d, egress) != 0
}

// mark returns the mark of a packet that goes by the stack.
func (c *connection) mark(d int) uint32 {
	mark := MarkMagic | c.Index&MarkState
	if d == 1 {
		mark |= MarkReply
	}
	return mark
}

// marked is what has been judged before: TCX egress gives it the source that
// its state says, and judges nothing.
func (m *Model) marked(f *Frame, p *packet) Outcome {
	index := f.Mark & MarkState
	if index == 0 {
		return f.end(reason.Marked)
	}
	d := 0
	if f.Mark&MarkReply != 0 {
		d = 1
	}
	for _, c := range m.states {
		if c.Index != index {
			continue
		}
		if c.Flags&state.NAT != 0 {
			if p.tuple.Src != c.Tuple[d].Src || p.tuple.Dst != c.leaving(d).Dst {
				return p.drop(reason.Guard) // it has waited, and its place is another's now
			}
			whole := p.tuple
			whole.Src, whole.SPort = c.leaving(d).Src, c.leaving(d).SPort
			p.ip().write(whole)
		}
		return p.out(reason.Marked)
	}
	return p.drop(reason.Guard)
}

// end is the end of a frame's way where it stands.
func (f *Frame) end(r reason.Reason) Outcome {
	switch {
	case !r.IsPass():
		return Outcome{Verdict: Drop, Reason: r, Length: len(f.Bytes)}
	case f.Hook == TCXEgress:
		return Outcome{Verdict: Out, Reason: r, Mark: f.Mark, Frame: f.Bytes, Length: len(f.Bytes)}
	}
	return Outcome{Verdict: Up, Reason: r, Mark: f.Mark, Frame: f.Bytes, Length: len(f.Bytes)}
}

// dropped reports whether the packet goes no further, answered or not.
func (o *Outcome) dropped() bool { return o.Verdict == Drop || o.Verdict == Answer }

func (p *packet) drop(r reason.Reason) Outcome { return Outcome{Verdict: Drop, Reason: r} }

func (p *packet) out(r reason.Reason) Outcome {
	return Outcome{Verdict: Out, Reason: r, Frame: p.frame}
}

// upLocal passes a packet to the box itself.
func (p *packet) upLocal(r reason.Reason) Outcome {
	return Outcome{Verdict: Up, Reason: r, Frame: p.frame}
}

// upGroup does the same where the destination may be a group of hosts: the stack
// may route such a packet on, unless its source is local to a link.
func (p *packet) upGroup(r reason.Reason, dst netip.Addr) Outcome {
	o := p.upLocal(r)
	if dst.IsMulticast() && p.tuple.Zone == 0 {
		o.Mark = MarkMulticast
	}
	return o
}

// up hands a packet to the stack, to be forwarded by it.
func (p *packet) up(r reason.Reason, mark uint32) Outcome {
	return Outcome{Verdict: Up, Reason: r, Mark: mark, Frame: p.frame}
}
