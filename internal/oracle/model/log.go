package model

import (
	"slices"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// logBytes is how many bytes of a packet are in a record.
const logBytes = 216

// A Record is what a rule that logs writes about a packet at one crossing
// (docs/packet-path.md, 11).
type Record struct {
	Interface uint32
	Out       bool
	Rule      uint32 // global number plus 1
	State     uint32 // index; 0: none
	Drop      bool
	Reason    reason.Reason
	All       bool    // because of log (all): not the packet that made the state
	User      *uint32 // because of log (user); nil: the packet is nobody's
	Family    int
	Length    int    // bytes of the IP packet
	Data      []byte // its first, in as it came, out as it leaves
}

// logged notes a rule that matched, if it logs.
func (c *crossing) logged(r *resolve.Rule) {
	c.log = c.log || r.Log
	c.logAll = c.logAll || r.LogAll
}

// mostFollows is how many rules are logged because of an earlier one.
const mostFollows = 16

// follow notes a rule that matches if it is logged because of an earlier one, and whether
// later ones are. A match rule that logs has a record anyway.
func (c *crossing) follow(r *resolve.Rule, number uint32) {
	if c.following && len(c.follows) < mostFollows && !(r.Action == ast.Match && r.Log) {
		c.follows = append(c.follows, number)
	}
	c.following = c.following || r.LogMatches && r.Action == ast.Match
}

// evaluated reports whether the rules have been evaluated.
func (c *crossing) evaluated() bool { return c != nil && c.due && !c.skipped }

// logging returns the rules of one side of a state that log all its packets: the first
// match rules, and the last rule of all, which decides.
func (m *Model) logging(c *crossing) (rules [len(state.State{}.Logs[0])]uint32) {
	n := 0
	for i, number := range c.matched {
		if last := i+1 == len(c.matched); m.rule(number).LogAll && (last || n < len(rules)-1) {
			rules[n] = number
			n++
		}
	}
	return rules
}

func (m *Model) rule(number uint32) *resolve.Rule { return m.sequence[number-1-m.ruleBase] }

// noteLogs notes in a new connection which rules log all its packets: those of sides that
// keep state. The others log each packet that they evaluate.
func (m *Model) noteLogs(c *connection, in, out *crossing) {
	for side, of := range []*crossing{in, out} {
		each := c.Flags&[]state.Flags{state.EvaluateIn, state.EvaluateOut}[side] != 0
		if of.evaluated() && of.rule != nil && of.rule.State == resolve.KeepState && of.rule.MaxPktRate.N != 0 {
			c.Flags |= state.Log // they all count
		}
		if of.evaluated() && of.logAll && !each {
			c.Flags |= state.Log
			c.Logs[side] = m.logging(of)
		}
	}
}

// logEvaluated writes the records of the crossings at which the rules were evaluated for a
// packet. o is its fate: the last record says why it was dropped.
func (m *Model) logEvaluated(p *packet, in, out *crossing, o *Outcome) {
	if in.evaluated() {
		why := in.passedBy()
		if o.dropped() && !out.evaluated() {
			why = o.Reason
		}
		m.logCrossing(p, in, o, why, p.came)
	}
	if !out.evaluated() {
		return
	}
	switch {
	case o.dropped():
		m.logCrossing(p, out, o, o.Reason, p.arrivedAs(out.seen))
	case p.carrier != nil:
		m.logCrossing(p, out, o, out.passedBy(), p.arrivedAs(p.carrier.leaving(p.direction)))
	default:
		m.logCrossing(p, out, o, out.passedBy(), p.came)
	}
}

func (c *crossing) passedBy() reason.Reason {
	if c.rule == nil {
		return reason.NoRule
	}
	return reason.Rule
}

// logCrossing writes a record for each rule that matched and logs.
func (m *Model) logCrossing(p *packet, c *crossing, o *Outcome, why reason.Reason, data []byte) {
	r := Record{Interface: c.iface, Out: c.out, Reason: why}
	if p.carrier != nil && !o.dropped() {
		r.State = p.carrier.Index
	}
	for _, r.Rule = range c.matched {
		if m.rule(r.Rule).Log {
			m.logRule(p, c, r, data)
		}
	}
	for _, r.Rule = range c.follows {
		if m.rule(r.Rule) != c.rule || !c.rule.Log {
			m.logRule(p, c, r, data)
		}
	}
}

func (m *Model) logRule(p *packet, c *crossing, r Record, data []byte) {
	if m.rule(r.Rule).LogUser && c.owner != nobody {
		r.User = &c.owner.User
	}
	p.record(r, data)
}

// logCarried writes the records of a packet of a connection: of the sides that evaluated
// it now, and of the rules that log all if the packet has passed.
func (m *Model) logCarried(p *packet, o *Outcome) {
	c, d, in, out := p.carrier, p.direction, p.anew[0], p.anew[1]
	if c != nil && c.changesFamily() {
		return // sendFamily did
	}
	dropped := o.dropped()
	to := p.to
	if p.egress() {
		to = p.iface.Index
	} else {
		if !in.evaluated() && (!dropped || out.evaluated()) {
			p.logSide(c, d, false, p.iface.Index, p.came)
		}
		m.logEvaluated(p, in, out, o)
	}
	if p.egress() && out != nil { // it met the rules here, or set skip
		return
	}
	if !out.evaluated() && !dropped && to != 0 && (p.egress() || !p.group) {
		p.logSide(c, d, true, to, p.arrivedAs(c.leaving(d)))
	}
}

// logSide writes the records of a packet for the rules that log all at the present side
// of its connection.
func (p *packet) logSide(c *connection, d int, out bool, iface uint32, data []byte) {
	if c.Flags&state.Log == 0 {
		return
	}
	side := 0
	if crossingNeeded(d, out) == state.Out {
		side = 1
	}
	for _, number := range c.Logs[side] {
		if number != 0 {
			p.record(Record{Interface: iface, Out: out, Rule: number, State: c.Index, Reason: reason.State, All: true}, data)
		}
	}
}

func (p *packet) record(r Record, data []byte) {
	r.Drop = !r.Reason.IsPass()
	r.Family, r.Length = p.family, p.length()
	r.Data = data[:min(len(data), logBytes)]
	p.records = append(p.records, r)
}

// arrivedAs returns the packet as it came, but with another tuple.
func (p *packet) arrivedAs(t state.Tuple) []byte {
	as := *p
	as.frame = slices.Concat(p.frame[:p.l3], p.came)
	as.ip().write(t)
	return as.frame[p.l3:]
}
