package model

import (
	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// sideOf returns the side of a connection, 0 in and 1 out, at which packets of direction d
// cross at a hook.
func sideOf(d int, egress bool) int { return int(crossingNeeded(d, egress) >> 1) }

// takes reports whether packets may cross at a side of a connection by an interface.
func (c *connection) takes(side int, ifindex uint32) bool {
	at := c.Bound[side]
	return at[0] == 0 || uint32(at[0]) == ifindex || uint32(at[1]) == ifindex
}

// fits reports whether a packet of direction d may cross at a hook by an interface. Where it
// leaves a rule may have chosen the way, whatever the side is bound to.
func (c *connection) fits(d int, egress bool, ifindex uint32) bool {
	return c.takes(sideOf(d, egress), ifindex) || egress && c.chosen[d] != nil
}

// bind binds a side of a connection to the interface of its crossing, if the rule says so,
// and does not send replies elsewhere.
func (c *connection) bind(side int, here *crossing) {
	if kind, ok := here.kind(); ok && kind == resolve.ReplyTo {
		return
	}
	if here.due && here.rule != nil && here.rule.IfBound && here.iface != 0 {
		c.Bound[side] = [2]uint16{uint16(here.iface), uint16(here.iface)}
	}
}

// bindAlso lets a bound side take packets at another interface, too, if the rules there
// keep state.
func (c *connection) bindAlso(side int, here *crossing) {
	if here.rule != nil && here.rule.State == resolve.KeepState {
		c.Bound[side][1] = uint16(here.iface)
	}
}

// meet handles a packet that crosses where its connection is not bound to (step 17). It
// meets the rules. If they pass it and would translate it as the connection does, it goes on
// by the connection, else without one.
func (m *Model) meet(p *packet, c *connection, d int, made *state.State) Outcome {
	if m.leavesToTCX(p) {
		return p.pass(reason.UpCopy)
	}
	if why := m.sanity(p); why != nil {
		return p.drop(*why)
	}
	if m.implicit(p) {
		return p.pass(reason.Implicit)
	}
	here := m.evaluate(m.ownedInputOf(p))
	p.met = &here
	if m.verdict(&here, p) != nil {
		return m.admit(p, nil, 0, made)
	}
	if !m.translatesAlike(p, c, d, &here) {
		if p.egress() && d == 0 {
			p.replaces = c
		}
		return m.admit(p, nil, 0, made)
	}
	if p.egress() {
		p.anew[1], p.qos = &here, here.qos
	} else {
		p.anew[0] = &here
	}
	o := m.carry(p, c, d, made)
	if p.egress() && p.carrier == c && !o.dropped() {
		m.logEvaluated(p, &crossing{}, &here, &o)
	}
	return o
}

// translatesAlike reports whether the rules of one crossing translate a packet as its
// connection does.
func (m *Model) translatesAlike(p *packet, c *connection, d int, here *crossing) bool {
	if p.egress() {
		return here.nat == nil && here.rdr == nil && c.Flags&state.NAT == 0
	}
	to := translated(p, here, &crossing{})
	leaves := c.leaving(d)
	if here.other != nil && (d == 1 || to.Src != leaves.Src) {
		return false
	}
	return here.nat == nil && to.Dst == leaves.Dst && to.DPort == leaves.DPort
}

// leavesElsewhere handles a packet that the rules have passed where it leaves, and its connection is
// not bound to. nil: it leaves by its connection. Else it is dropped, or begins another one.
func (m *Model) leavesElsewhere(p *packet, c *connection, d int, out *crossing) *Outcome {
	if leaves := c.leaving(d); leaves.Src == p.tuple.Src && leaves.SPort == p.tuple.SPort && out.nat == nil && out.rdr == nil {
		c.bindAlso(sideOf(d, true), out)
		return nil
	}
	o := p.drop(reason.StateMismatch)
	if d == 0 {
		p.replaces = c
	}
	return &o
}
