package model

import (
	"slices"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/ast"
)

// output is step 10, for a packet in direction d of a connection that is already tracked.
// why is the reason it passes with; evaluated: it has met the rules of every crossing.
func (m *Model) output(p *packet, c *connection, d int, why reason.Reason, evaluated bool) Outcome {
	if c.changesFamily() {
		return m.sendFamily(p, c, d, why, evaluated)
	}
	leaves := c.leaving(d)
	r := m.destination(p, c, d, leaves)
	if r.drop != nil && !p.egress() {
		return m.lose(p, *r.drop)
	}
	p.carrier, p.direction, p.to = c, d, r.route.Interface
	elsewhere := !p.egress() && r.up == nil && !c.fits(d, true, r.route.Interface)
	if elsewhere && (evaluated || r.route.Interface == 0) {
		return p.drop(reason.StateMismatch) // late fragments meet no rules
	}
	if !p.egress() && !evaluated {
		if refused := m.evaluateAgain(p, c, d, r.route.Interface, elsewhere); refused != nil {
			return *refused
		}
	}
	p.qos = p.qos.or(c.qos[d])
	if came := p.anew[0]; came != nil {
		p.qos = p.qos.or(came.qos)
	}
	if !p.egress() && p.options && c.Flags&state.Options == 0 {
		m.countPath(c.path, d, p)
		return p.drop(reason.Options)
	}
	if why := m.remember(p, c, d); why != nil {
		return p.drop(*why)
	}
	in, out := p.anew[0], p.anew[1]
	if p.crossed[0] != nil {
		in, out = p.crossed[0], p.crossed[1]
	}
	p.normalise(c.scrubBetween(d, in, out))
	p.moveStamps(c, d)
	if r.drop != nil {
		return m.lose(p, *r.drop)
	}
	if p.egress() && r.chosen != nil && p.length() > r.route.MTU {
		return m.refuseLate(p, reason.GatewayMTU, r.route.MTU)
	}
	m.countPath(c.path, d, p)
	switch {
	case p.egress():
		p.scrubHeader(atOut)
		p.ip().write(leaves)
		p.mark = c.markOn(p.mark)
		if r.chosen != nil {
			return m.outToGateway(p, r.route, why)
		}
		return p.out(why)
	case r.up != nil && *r.up == reason.UpRoute:
		p.scrubHeader(atUp)
		half := m.halfTranslated(p, c, d)
		p.ip().write(half)
		p.mark = c.routeMark(p.mark, d)
		if p.fragment != fragmentLater && c.Flags&state.NAT != 0 && m.needsRecord(p, c, d, half) {
			m.record(keyOf(p, half), record{c: c, d: d, qos: m.packetQoS(p), print: p.print()}) // for an error that quotes it
		}
		return p.upLocal(reason.UpRoute)
	case r.up != nil:
		p.scrubHeader(atUp)
		p.ip().write(leaves)
		p.mark = c.markOn(p.mark)
		return m.upGroup(p, *r.up, leaves.Dst)
	}
	return m.forward(p, c, d, r, why)
}

// lose drops a packet that cannot go where it should.
func (m *Model) lose(p *packet, why reason.Reason) Outcome {
	o := p.drop(why)
	if why == reason.Gateway {
		o = m.refuseGateway(p, why, 0)
	}
	o.Late = p.egress()
	return o
}

// destination finds where a connection's packets go. If it once led out of the box and
// has no route any more, they go up, so that the stack replies.
func (m *Model) destination(p *packet, c *connection, d int, leaves state.Tuple) routed {
	if c.chosen[d] != nil {
		return m.toHop(c.chosen[d])
	}
	if p.egress() {
		return routed{}
	}
	if c.ends[d] {
		return routed{up: reasonFor(reason.Local)}
	}
	r := m.route(p, leaves, c.routeMark(p.mark, d))
	if r.up == nil && r.drop == nil && p.family == 6 && (p.tuple.Src.IsMulticast() || p.tuple.Src.IsLoopback()) {
		return routed{up: reasonFor(reason.UpRoute)} // the kernel looks up no routes for these sources
	}
	if r.up != nil || r.drop != nil {
		return routed{up: reasonFor(reason.UpRoute)}
	}
	return m.open(r)
}

// halfTranslated returns the tuple of a packet for the stack to forward: its destination is
// translated, its source is not (an address of the box would be a martian to the stack).
func (m *Model) halfTranslated(p *packet, c *connection, d int) state.Tuple {
	half, leaves := p.tuple, c.leaving(d)
	half.Dst, half.DPort = leaves.Dst, leaves.DPort
	return half
}

// leaving returns the tuple of packets of direction d after the box.
func (c *connection) leaving(d int) state.Tuple { return c.Tuple[1-d].Reverse() }

// evaluateAgain evaluates the rules of those sides of a connection that keep no state; to is
// where the packet would leave, 0 if there is no route. What those rules would translate
// is not translated: the state has decided. It returns the outcome of a packet that does
// not pass, else nil. elsewhere: it would leave where the connection is not bound to.
func (m *Model) evaluateAgain(p *packet, c *connection, d int, to uint32, elsewhere bool) *Outcome {
	came, left := state.EvaluateIn, state.EvaluateOut
	if d == 1 {
		came, left = left, came
	}
	a := m.ruleInputOf(p)
	tag, in, set := c.tag, crossing{}, c.qos[d]
	if met := p.anew[0]; met != nil {
		tag, in, set = met.tag, *met, met.qos
	}
	if c.Flags&came != 0 {
		in = m.evaluate(a)
		p.anew[0] = &in
		if why := m.verdict(&in, p); why != nil {
			refused := m.refuse(p, *why, &in, &crossing{})
			return &refused
		}
		tag, set = in.tag, in.qos
	}
	if (c.Flags&left != 0 || elsewhere) && to != 0 {
		a.direction, a.iface = ast.Out, m.box.byIndex(to)
		if !elsewhere { // there its source is not translated yet
			a.tuple.Src = c.leaving(d).Src
			if d == 1 { // what the rules see of direction 0 has the port that it came with
				a.tuple.SPort = c.leaving(d).SPort
			}
		}
		a.tuple.Dst, a.tuple.DPort = c.leaving(d).Dst, c.leaving(d).DPort
		a.tos = p.tosAfter(c.scrubBetween(d, p.anew[0], nil).tos)
		a.tag, a.mark, a.prio = tag, c.routeMark(p.mark, d), p.prioSet(set)
		if d == 0 {
			a.keep = c.MarkMask[0]
		}
		out := m.evaluate(a)
		p.anew[1] = &out
		p.qos = out.qos
		if why := m.verdict(&out, p); why != nil {
			refused := m.refuse(p, *why, &in, &out)
			return &refused
		}
		if elsewhere {
			return m.leavesElsewhere(p, c, d, &out)
		}
	}
	return nil
}

// forward sends a packet of a connection to its next hop, or up if only the stack can
// send it; TCX egress then translates the source.
func (m *Model) forward(p *packet, c *connection, d int, to routed, why reason.Reason) Outcome {
	r := to.route
	obstacle := m.obstacle(p, r, c.routeMark(p.mark, d))
	if to.chosen != nil {
		obstacle = m.chosenObstacle(p, r)
	}
	if to.chosen != nil && obstacle != nil && !p.group {
		return m.toGateway(p, r, *obstacle, c, d, func() {
			p.ip().write(c.leaving(d))
			p.mark = m.marks().Set(c.markOn(p.mark), MarkLeaves)
		})
	}
	if p.group || obstacle != nil {
		p.scrubHeader(atUp)
	}
	switch {
	case p.group:
		return p.upLocal(reason.Local)
	case obstacle == nil:
		p.ip().write(c.leaving(d))
		p.mark = m.marks().Set(c.markOn(p.mark), MarkLeaves)
		return m.redirect(p, r, why)
	case *obstacle == reason.UpDevice:
		return p.redirectLater(*obstacle, c, d)
	}
	half := m.halfTranslated(p, c, d)
	p.ip().write(half)
	p.mark = c.routeMark(p.mark, d)
	return m.handOff(p, *obstacle, c, d, half)
}

// forwardStateless does the same for a packet without a state.
func (m *Model) forwardStateless(p *packet, to routed, why reason.Reason) Outcome {
	r := to.route
	obstacle := m.obstacle(p, r, p.steered)
	if to.chosen != nil {
		obstacle = m.chosenObstacle(p, r)
	}
	if to.chosen != nil && obstacle != nil && !p.group {
		return m.toGateway(p, r, *obstacle, nil, 0, func() { p.mark = p.outMarks.On(p.mark) })
	}
	if p.group || obstacle != nil {
		p.scrubHeader(atUp)
	}
	switch {
	case p.group:
		return p.upLocal(reason.Local)
	case obstacle != nil && *obstacle == reason.UpDevice:
		return p.redirectLater(*obstacle, nil, 0)
	case obstacle != nil:
		return m.handOff(p, *obstacle, nil, 0, p.tuple)
	}
	p.mark = p.outMarks.On(p.mark)
	return m.redirect(p, r, why)
}

// obstacle returns why a packet cannot be redirected at once, or nil.
func (m *Model) obstacle(p *packet, r Route, mark uint32) *reason.Reason {
	switch {
	case m.box.MarkBlind && mark != 0:
		return reasonFor(reason.UpMark)
	case !r.Neighbour:
		return reasonFor(reason.UpNeighbour)
	case p.options:
		return reasonFor(reason.UpOptions)
	case p.ttl <= 1:
		return reasonFor(reason.UpTTL)
	case p.length() > r.MTU:
		return reasonFor(reason.UpMTU)
	case p.hook == XDP && !m.reachedByXDP(m.box.byIndex(r.Interface)):
		return reasonFor(reason.UpDevice)
	}
	return nil
}

// redirect sends a packet to its next hop.
func (m *Model) redirect(p *packet, r Route, why reason.Reason) Outcome {
	p.scrubHeader(atHop)
	return m.redirectFrame(p, r, why, len(p.frame))
}

// redirectFrame sends a packet with a finished IP header; came is the frame's length when it
// came.
func (m *Model) redirectFrame(p *packet, r Route, why reason.Reason, came int) Outcome {
	to := m.box.byIndex(r.Interface)
	if p.iface.L3 && !to.L3 {
		etherType := []byte{0x08, 0x00}
		if p.family == 6 {
			etherType = []byte{0x86, 0xdd}
		}
		p.frame = slices.Concat(make([]byte, 12), etherType, p.frame)
	}
	if !to.L3 {
		copy(p.frame, r.Dst[:])
		copy(p.frame[6:], r.Src[:])
	}
	if p.l3 > etherHeader {
		p.frame = slices.Concat(p.frame[:12], p.frame[p.l3-2:])
	}
	if p.hook == XDP && m.box.tagged(to) {
		tag := []byte{byte(to.TagType >> 8), byte(to.TagType), byte(to.Tag >> 8), byte(to.Tag)}
		p.frame = slices.Concat(p.frame[:12], tag, p.frame[12:])
		r.Interface = to.Parent
	}
	if missing := ethLeast - len(p.frame); p.hook == XDP && len(p.frame) < came && missing > 0 {
		p.frame = append(p.frame, make([]byte, missing)...) // not every driver pads what XDP sends
	}
	return Outcome{Verdict: Redirect, Reason: why, Interface: r.Interface, Frame: p.frame}
}
