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

// Hooks. A frame is handled by one of the first two, never by both.
const (
	XDP Hook = iota
	TCXIngress
	TCXEgress
)

// A Frame is what a hook sees.
type Frame struct {
	Hook      Hook
	Interface uint32 // index of the interface whose hook runs
	From      uint32 // TCXEgress: where the stack received it; 0: the box's own
	Mark      uint32
	Priority  uint32 // skb->priority
	Tagged    bool   // TCXIngress: the kernel has taken a tag out of the frame: TCI
	TCI       uint16
	NewID     uint16 // the id that the dataplane gave it for random-id
	Noted     bool   // one of weir's TCX programs has redirected it to here
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
	Reject           // dropped; a reject goes back out of Interface, or for TCXEgress in by it
)

// An Outcome is a frame's fate.
type Outcome struct {
	Verdict   Verdict
	Reason    reason.Reason
	Interface uint32   // Redirect
	At        uint32   // the interface whose rules the frame met; 0: none
	Mark      uint32   // at TCX: afterwards; if XDP hands the packet up: the mark that it will have
	Priority  uint32   // skb->priority; what XDP redirects has none
	Back      bool     // XDP leaves the redirect to TCX ingress
	Chosen    bool     // … of a packet without a state, to a gateway that a rule has chosen
	Late      bool     // Drop and Reject: the log has shown that the packet passes
	Bridged   bool     // Redirect: an ether rule sends the frame on as it is
	Asked     bool     // Redirect: the kernel finds out the neighbour's address and writes the MACs
	Number    uint32   // number of its state, with its direction, if the stack or TCX ingress is to forward it; 0: none
	Frame     []byte   // as it goes on, or the reject; nil for Drop
	Done      bool     // the packet is done: XDP tells TCX ingress, which does not evaluate it again
	Length    int      // bytes that are counted: of the IP packet, or of a frame without one
	Passed    *Outcome // what was counted before an ether rule blocked the frame where it leaves; nil: nothing
	Records   []Record // what rules have logged about it, in order
}

// A Model evaluates frames one after the other.
type Model struct {
	box      *Box
	rules    *resolve.Ruleset
	ruleBase uint32 // global number of rule 0
	unloaded bool
	queues   func(name string) uint16 // numbers of queues; nil: queues have none
	chance   func() bool              // decides whether a rule with a probability matches; nil: all match

	now       state.Tick
	timeouts  state.Timeouts
	part      uint64 // by how much they are scaled, in 1024ths
	states    []*connection
	fragments []*fragmented
	handoffs  map[recordKey][]record
	bucket    bucket
	rejects   Rejects

	turns        map[turn]uint64
	sticky       map[keeper]hop // what sources keep
	poolSecret   uint64
	asked        map[uint32]state.Tick // by interface: when a DHCP client of the box last asked
	way, ways    uint64                // for AskAll: which of how many next hops to take
	paths        map[Path][2]Counter
	ruleCounters []RuleCounter // by number

	sequence []*resolve.Rule // by number
	numbers  map[*resolve.Rule]int
	listed   map[listed]*resolve.Rule // what translation rules are in the sequence
	tables   map[TableEntry]TableCounter
	sources  map[SourceKey]*Source
	limited  map[*resolve.Rule]int   // states of rules that limit them
	rates    map[*resolve.Rule]*rate // of rules with a max-pkt-rate
	limiters map[limiterKey]*Limiter
	used     map[*resolve.Rule]bool // rules with once that have had their packet; nil: each packet is the first
}

// A connection is a state, and what only the model keeps by name.
type connection struct {
	state.State
	path     Path
	endpoint bool   // its source's address and port became what they become for all destinations
	unseen   bool   // what they became is not known: the state was given up at once
	tag      string // of the side that keeps state
	qos      [2]qos
	dead     bool
	counted  *counted      // by the limits of its rules
	pooled   []Pooled      // what pools with least-states have given it
	refused  reason.Reason // the limit that ended it
	ends     [2]bool       // packets of the direction are for the box itself
	chosen   [2]*hop       // the gateway that a rule has chosen for packets of the direction
}

// New returns a model without states.
func New(box *Box, rules *resolve.Ruleset, ruleBase uint32) *Model {
	m := &Model{
		box: box, rules: rules, ruleBase: ruleBase,
		handoffs: make(map[recordKey][]record), turns: make(map[turn]uint64), sticky: make(map[keeper]hop), asked: make(map[uint32]state.Tick), paths: make(map[Path][2]Counter),
		tables: make(map[TableEntry]TableCounter), sources: make(map[SourceKey]*Source), limited: make(map[*resolve.Rule]int),
		used: make(map[*resolve.Rule]bool), rates: make(map[*resolve.Rule]*rate), limiters: make(map[limiterKey]*Limiter),
	}
	m.numberRules()
	m.SetClock(0)
	return m
}

// SetClock sets the time, and scales the timeouts by the present number of states.
func (m *Model) SetClock(now state.Tick) {
	o := &m.rules.Options
	m.now = now
	m.part = partOf(uint32(len(m.states)), o.Timeouts.AdaptiveStart, o.Timeouts.AdaptiveEnd)
	m.timeouts = state.TimeoutsOf(&o.Timeouts).
		Adapt(uint32(len(m.states)), o.Timeouts.AdaptiveStart, o.Timeouts.AdaptiveEnd)
}

// SetUnloaded tells the model that its rules are the built-in ones.
func (m *Model) SetUnloaded(unloaded bool) { m.unloaded = unloaded }

// Sweep releases dead and expired states.
func (m *Model) Sweep() {
	var kept []*connection
	for _, c := range m.states {
		if !m.due(c) && !c.dead {
			kept = append(kept, c)
		} else {
			c.dead = true // fragments may still point to it
			m.uncount(c.counted)
		}
	}
	m.states = kept
	m.sweepSources()
}

// States returns the live states in the order of their creation, including expired ones
// that no packet has met.
func (m *Model) States() []state.State {
	live := make([]state.State, 0, len(m.states))
	for s := range m.Live() {
		live = append(live, *s)
	}
	return live
}

// Live iterates over the same states without copying them. The caller must not change
// them.
func (m *Model) Live() iter.Seq[*state.State] {
	return func(yield func(*state.State) bool) {
		for _, c := range m.states {
			if !c.dead && !yield(&c.State) {
				return
			}
		}
	}
}

// Handle sends a frame through the steps of docs/packet-path.md. made is the state that
// the dataplane made for it, or nil if there is none or it is not known.
func (m *Model) Handle(f *Frame, made *state.State) Outcome {
	i := m.box.byIndex(f.Interface)
	if i == nil {
		return Outcome{Verdict: Drop, Reason: reason.Interface}
	}
	f = &Frame{Hook: f.Hook, Interface: f.Interface, From: f.From, Mark: f.Mark, Priority: f.Priority, Tagged: f.Tagged, TCI: f.TCI, NewID: f.NewID, Noted: f.Noted, Bytes: append([]byte(nil), f.Bytes...)}
	switch {
	case f.Hook == XDP:
		f.Mark = 0
	case f.Noted:
		o := f.end(reason.Marked)
		m.leaves(i, &o)
		return o
	case f.Hook == TCXIngress || f.From == 0: // only weir sets its own bits
		f.Mark = m.marks().Set(f.Mark, MarkNone)
	}
	p, why := parse(f, i, m.box, m.rules)
	var decides *resolve.ListRule
	if f.Hook != TCXEgress {
		decides = m.comesIn(p, why)
	}
	switch {
	case blocks(decides):
		return Outcome{Verdict: Drop, Reason: reason.Block, At: p.iface.Index, Length: len(f.Bytes)}
	case bridges(decides):
		return m.bridge(f, p.iface, decides.Frame.BridgeTo)
	}
	o := m.handleFrame(f, p, why, made)
	m.leaves(i, &o)
	return o
}

// handleFrame handles a frame that no ether rule blocks; why is what the parser says of it.
func (m *Model) handleFrame(f *Frame, p *packet, why *reason.Reason, made *state.State) Outcome {
	if why != nil {
		o := f.end(*why)
		o.At = p.iface.Index
		return o
	}
	p.from, p.mark, p.newID = m.receivedBy(f, p), f.Mark, f.NewID
	p.arrived = f.Mark
	o := m.handle(f, p, made)
	o.At, o.Length, o.Done, o.Records = p.iface.Index, p.length(), o.Reason != reason.UpCopy, p.records
	if o.Mark == 0 {
		o.Mark = p.mark
	}
	if f.Hook != XDP || o.Verdict == Up && o.Reason != reason.UpCopy {
		o.Priority = m.packetQoS(p).priority(f.Priority)
	}
	return o
}

// receivedBy returns where a frame came into the box; nil for the box's own.
func (m *Model) receivedBy(f *Frame, p *packet) *Interface {
	if f.Hook == TCXEgress {
		return m.box.byIndex(f.From)
	}
	return p.iface
}

// handle handles a frame with a packet, from step 2 on.
func (m *Model) handle(f *Frame, p *packet, made *state.State) Outcome {
	if f.Hook == TCXEgress && f.From != 0 {
		return m.handedOff(f, p, made)
	}
	return m.handleParsed(p, made)
}

// handleParsed handles what comes in, what the box itself sends, and multicast that the
// stack has routed.
func (m *Model) handleParsed(p *packet, made *state.State) Outcome {
	if m.listsPiece(p) {
		p.standAlone()
	}
	switch {
	case p.alone():
		return m.admit(p, nil, 0, made)
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
	if !c.fits(d, p.egress(), p.iface.Index) {
		return m.meet(p, c, d, made)
	}
	if p.egress() && c.changesFamily() {
		return p.drop(reason.AfTo) // the box itself is no end of such a connection
	}
	return m.carry(p, c, d, made)
}

// carry tracks a packet in its connection and sends it on.
func (m *Model) carry(p *packet, c *connection, d int, made *state.State) Outcome {
	if c.isCopied() && m.leavesToTCX(p) {
		return p.pass(reason.UpCopy)
	}
	if m.isTooFast(c, d) {
		return p.drop(reason.MaxPktRate)
	}
	switch m.track(p, c, d) {
	case over:
		c.dead = true
		p.anew = [2]*crossing{} // it joins nothing: it makes another connection
		return m.admit(p, nil, 0, made)
	case mismatch:
		return m.answerSegment(p, c, d)
	case badStamp:
		return p.drop(reason.BadTimestamp)
	case refused:
		c.dead = true
		return p.drop(c.refused)
	}
	if p.met != nil { // it fits the connection, and the rules here have passed it
		c.bindAlso(sideOf(d, p.egress()), p.met)
	}
	o := m.output(p, c, d, reason.State, false)
	if p.replaces != nil {
		p.carrier, p.to, p.anew = nil, 0, [2]*crossing{}
		return m.admit(p, nil, 0, made)
	}
	m.logCarried(p, &o)
	return o
}

// find returns the live state that holds a tuple, and the direction. It marks an expired
// one dead.
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

// expired reports whether a packet finds the state expired. Its rules' own timeouts can
// only let it live longer: if they are shorter, the garbage collection ends it.
func (m *Model) expired(c *connection) bool {
	return c.Expires(m.now, &m.timeouts) <= 0 && m.due(c)
}

// due reports whether the garbage collection ends the state.
func (m *Model) due(c *connection) bool {
	return int64(m.now.Since(c.Last())) >= int64(m.timeoutOf(c))
}

// crossingNeeded returns the crossing that packets of direction d must have passed at
// this hook.
func crossingNeeded(d int, egress bool) state.Flags {
	if (d == 0) != egress {
		return state.In
	}
	return state.Out
}

func (c *connection) mayCross(d int, egress bool) bool {
	return c.Flags&crossingNeeded(d, egress) != 0
}

// end returns the outcome of a frame that ends here.
func (f *Frame) end(r reason.Reason) Outcome {
	switch {
	case !r.IsPass():
		return Outcome{Verdict: Drop, Reason: r, Length: len(f.Bytes)}
	case f.Hook == TCXEgress:
		return Outcome{Verdict: Out, Reason: r, Mark: f.Mark, Priority: f.Priority, Frame: f.Bytes, Length: len(f.Bytes)}
	}
	return Outcome{Verdict: Up, Reason: r, Mark: f.Mark, Priority: f.Priority, Frame: f.Bytes, Length: len(f.Bytes)}
}

// dropped reports whether weir drops the packet, with or without a reject. A drop for
// lack of a mark comes later and does not count, and so do others.
func (o *Outcome) dropped() bool {
	if o.Late {
		return false
	}
	return o.Verdict == Drop && o.Reason != reason.MarkTaken || o.Verdict == Reject
}

func (p *packet) drop(r reason.Reason) Outcome { return Outcome{Verdict: Drop, Reason: r} }

func (p *packet) out(r reason.Reason) Outcome {
	return Outcome{Verdict: Out, Reason: r, Frame: p.frame}
}

// upLocal passes a packet to the box itself.
func (p *packet) upLocal(r reason.Reason) Outcome {
	return Outcome{Verdict: Up, Reason: r, Frame: p.frame}
}

// upGroup does the same if the destination may be a multicast group: the stack may route
// such a packet on, unless its source is local to a link.
func (m *Model) upGroup(p *packet, r reason.Reason, dst netip.Addr) Outcome {
	o := p.upLocal(r)
	if dst.IsMulticast() && p.tuple.Zone == 0 {
		t := p.tuple
		t.Dst = dst
		o.Mark = m.marks().Set(p.mark, m.record(keyOf(p, t), record{multicast: true, alone: p.alone()}))
	}
	return o
}

// redirectLater hands a packet back to TCX ingress of the same device, which redirects it.
func (p *packet) redirectLater(r reason.Reason, c *connection, d int) Outcome {
	return Outcome{Verdict: Up, Reason: r, Back: true, Number: c.number(d), Frame: p.frame}
}

// number returns the dataplane's number for a connection's direction; 0: there is none.
func (c *connection) number(d int) uint32 {
	if c == nil {
		return 0
	}
	return c.Index<<1 | uint32(d)
}
