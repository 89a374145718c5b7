package model

import (
	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// admit handles a packet that no state lets through: sanity, implicit passes, rules,
// route. c is a live state that the packet may not cross by here, or nil.
func (m *Model) admit(p *packet, c *connection, d int, made *state.State) Outcome {
	if m.leavesToTCX(p) {
		return p.pass(reason.UpCopy)
	}
	if why := m.sanity(p); why != nil {
		return p.drop(*why)
	}
	if m.implicit(p) {
		return p.pass(reason.Implicit)
	}
	in, out, r, why := m.evaluateCrossings(p, c == nil)
	p.path = pathOf(in, out)
	p.qos = out.qos.or(in.qos)
	p.scrub = scrubAt(in, out)
	var o Outcome
	switch {
	case why != nil:
		o = m.refuse(p, *why, in, out)
	case c == nil && wantsState(p, in, out):
		o = m.admitWithState(p, in, out, r, made)
	default:
		if c != nil {
			m.addSide(c, p, d, in, out)
		}
		p.marks, p.outMarks = in.mark, out.mark
		o = m.stateless(p, r, passReason(in, out))
	}
	m.logEvaluated(p, in, out, &o)
	return o
}

// addSide adds the missing crossing to a state if its rule keeps state. That is for later
// packets; this one goes on without the state.
func (m *Model) addSide(c *connection, p *packet, d int, in, out *crossing) {
	here := in
	if p.egress() {
		here = out
	}
	if here.rule != nil && here.rule.State == resolve.KeepState && here.hop == nil {
		side := crossingNeeded(d, p.egress())
		c.Flags |= side
		m.addSideQoS(c, side, here.qos)
		c.keepScrub(int(side>>1), here)
		c.bind(int(side>>1), here)
		if here.logAll {
			c.Flags |= state.Log
			c.Logs[side>>1] = m.logging(here)
		}
	}
}

// evaluateCrossings evaluates the rules of every crossing that is due. At egress this is the out
// crossing of the box's own packets. At ingress it is the in crossing, and the out
// crossing if the route leads out again. fresh: no state holds the tuple yet.
func (m *Model) evaluateCrossings(p *packet, fresh bool) (in, out *crossing, r routed, why *reason.Reason) {
	in, out = &crossing{}, &crossing{}
	if p.egress() {
		if a := m.ownedInputOf(p); p.met != nil {
			out, r = m.detour(p, a, *p.met, p.tuple, r)
		} else {
			out, r = m.leave(p, a, p.tuple, r)
		}
		if why := m.verdict(out, p); why != nil {
			return in, out, r, why
		}
		r = m.redirected(p, fresh, in, out, r)
		return in, out, r, r.drop
	}
	if p.met != nil {
		*in = *p.met
	} else {
		*in = m.evaluate(m.ownedInputOf(p))
	}
	if why := m.verdict(in, p); why != nil {
		return in, out, r, why
	}
	if in.diverted() {
		in.rdr, in.nat = nil, nil // a socket gets the packet as it is
		return in, out, routed{up: reasonFor(reason.Local)}, nil
	}
	if !fresh || !p.makesState() {
		in.rdr, in.nat = nil, nil // without a state nothing is translated
	}
	inside := translated(p, in, out)
	if in.other != nil { // no rules are evaluated where it leaves
		*out = crossing{due: true, skipped: true}
		if p.met != nil { // there is a connection, bound elsewhere, or it has just ended
			owner, _ := m.find(p.tuple)
			fresh = owner == nil
		}
		if why := m.familyRefused(p, inside, fresh); why != nil {
			return in, out, r, why
		}
		r, why = m.familyFirst(p, in, inside)
		return in, out, r, why
	}
	p.steered = in.mark.On(p.mark)
	r = m.route(p, inside, p.steered)
	toGroup := p.group || p.tuple.Zone != 0 || r.up != nil && *r.up == reason.UpMulticast
	switch h := in.routesTo(); {
	case r.drop != nil || toGroup:
	case h != nil:
		r = m.toHop(h.toward(inside.Dst))
	case in.rtable != 0 && !m.box.owns(inside.Dst) && !m.box.broadcast(inside.Dst):
		r = m.byTable(inside.Dst, in.rtable)
	}
	if p.group && r.drop == nil && r.up == nil {
		r.up = reasonFor(reason.Local) // frames for a group MAC address are never forwarded
	}
	r = m.open(r)
	if r.drop != nil || r.up != nil {
		return in, out, r, r.drop
	}
	a := m.ruleInputOf(p)
	a.direction, a.iface, a.tag = ast.Out, m.box.byIndex(r.route.Interface), in.tag
	if a.iface == nil {
		a.iface = &Interface{} // not known: rules with on do not match
	}
	a.tos, a.prio = p.tosAfter(scrubAt(in, nil).tos), p.prioSet(in.qos)
	a.mark, a.keep = in.mark.On(p.mark), in.mark.Mask
	a.tuple.Src, a.tuple.Dst, a.tuple.DPort = inside.Src, inside.Dst, inside.DPort
	out, r = m.leave(p, a, inside, r)
	if why := m.verdict(out, p); why != nil {
		return in, out, r, why
	}
	r = m.redirected(p, fresh, in, out, r)
	return in, out, r, r.drop
}

// redirected returns where a packet goes to which the rules on the way out may have given
// another destination. fresh: no state holds its tuple yet.
func (m *Model) redirected(p *packet, fresh bool, in, out *crossing, r routed) routed {
	if out.rdr == nil || !fresh || !p.makesState() || r.drop != nil || r.chosen != nil {
		return r
	}
	lost := routed{drop: reasonFor(reason.Gateway)}
	to := m.route(p, translated(p, in, out), p.steered)
	switch {
	case to.up != nil || to.drop != nil:
		return lost
	case p.egress():
		return m.toHop(&hop{addr: out.rdr.addr})
	}
	to = m.open(to)
	out.iface = to.route.Interface
	return to
}

func (m *Model) admitWithState(p *packet, in, out *crossing, r routed, made *state.State) Outcome {
	reply := replyHop(in, out)
	if p.egress() {
		reply = nil
	}
	if reply != nil && !reply.addr.IsValid() {
		return m.refuseGateway(p, reason.Gateway, 0)
	}
	if p.replaces != nil {
		p.replaces.dead = true
	}
	c, why := m.create(p, in, out, made)
	if why != nil {
		return m.refuse(p, *why, in, out)
	}
	c.chosen[0] = r.chosen
	if reply != nil {
		c.chosen[1] = reply.toward(p.tuple.Src)
	}
	p.carrier, p.direction, p.crossed = c, 0, [2]*crossing{in, out}
	if c.changesFamily() {
		if why := m.remember(p, c, 0); why != nil {
			return p.drop(*why)
		}
		o := m.sendFamily(p, c, 0, passReason(in, out), true)
		o.Late = true
		return o
	}
	if r.up == nil {
		return m.output(p, c, 0, passReason(in, out), true)
	}
	if why := m.remember(p, c, 0); why != nil {
		return p.drop(*why)
	}
	m.countPath(c.path, 0, p)
	p.normalise(c.scrubBetween(0, in, out))
	p.moveStamps(c, 0)
	p.scrubHeader(atUp)
	p.ip().write(c.leaving(0))
	p.mark = c.markOn(p.mark)
	return m.upGroup(p, *r.up, c.leaving(0).Dst)
}

// ruleInputOf returns a packet as the rules see it now. Until its socket is looked up it is
// nobody's.
func (m *Model) ruleInputOf(p *packet) ruleInput {
	a := ruleInput{
		direction: ast.In, iface: p.iface, family: p.family, tuple: p.tuple,
		tcpFlags: p.tcp.flags, icmpType: p.icmpType, icmpCode: p.icmpCode,
		tag: p.tag, mark: p.mark, tos: p.tos, prio: p.prio, fragment: p.alone(), length: p.length(), received: p.from, packet: p.tuple, owner: nobody, system: m.systemOf(p),
	}
	if p.egress() {
		a.direction = ast.Out
	}
	return a
}

// ownedInputOf is ruleInputOf with the owner of the packet's socket.
func (m *Model) ownedInputOf(p *packet) ruleInput {
	a := m.ruleInputOf(p)
	a.owner = m.box.socketOf(p)
	return a
}

// stateless forwards a packet without a state.
func (m *Model) stateless(p *packet, r routed, why reason.Reason) Outcome {
	if r.drop != nil {
		return p.drop(*r.drop)
	}
	p.chosen = r.chosen
	if why := m.remember(p, nil, 0); why != nil {
		return p.drop(*why)
	}
	p.normalise(p.scrub)
	if p.egress() && r.chosen != nil && p.length() > r.route.MTU {
		return m.refuseLate(p, reason.GatewayMTU, r.route.MTU)
	}
	d := 0
	if p.carrier != nil {
		d = p.direction
	}
	m.countPath(p.path, d, p)
	p.mark = p.marks.On(p.mark)
	switch {
	case p.egress():
		p.scrubHeader(atOut)
		p.mark = p.outMarks.On(p.mark)
		if r.chosen != nil {
			return m.outToGateway(p, r.route, why)
		}
		return p.out(why)
	case r.up != nil:
		p.scrubHeader(atUp)
		return m.upGroup(p, *r.up, p.tuple.Dst)
	}
	return m.forwardStateless(p, r, why)
}

func (p *packet) pass(r reason.Reason) Outcome {
	if p.egress() {
		return p.out(r)
	}
	return p.upLocal(r)
}

// routed says where a packet goes: up, nowhere, or along a route.
type routed struct {
	up, drop *reason.Reason
	route    Route
	chosen   *hop // the route leads to a gateway that a rule has chosen
}

// route finds where a packet goes. inside is its tuple after rdr-to and before nat-to;
// mark is its mark.
func (m *Model) route(p *packet, inside state.Tuple, mark uint32) routed {
	dst := inside.Dst
	switch {
	case dst.IsMulticast() || dst == limited:
		return routed{up: reasonFor(reason.UpMulticast)}
	case m.box.owns(dst) || m.box.broadcast(dst):
		return routed{up: reasonFor(reason.Local)}
	case p.family == 4 && reserved4.Contains(dst):
		return routed{drop: reasonFor(reason.MartianDest)}
	case p.tuple.Zone != 0, p.family == 6 && dst.IsLinkLocalUnicast():
		return routed{up: reasonFor(reason.Local)}
	}
	route := m.box.route(dst, mark)
	if route.Kind == RouteNone && mark != 0 && m.box.MarkBlind {
		return routed{route: Route{Kind: RouteForward}} // to no interface that is known; the stack routes it by its mark
	}
	if route.Kind != RouteForward {
		return routed{up: reasonFor(reason.Local)}
	}
	return routed{route: route}
}

// open drops packets that would leave by an interface that the box does not know, that
// is, one without weir's programs.
func (m *Model) open(r routed) routed {
	blind := m.box.MarkBlind && r.route.Interface == 0
	if r.up == nil && r.drop == nil && !blind && m.box.byIndex(r.route.Interface) == nil {
		r.drop = reasonFor(reason.Interface)
	}
	return r
}
