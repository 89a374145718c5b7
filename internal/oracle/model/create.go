package model

import (
	"weir/internal/fw/reason"
	"weir/internal/fw/state"
)

// create is step 6. It returns the new connection, or the reason to drop.
func (m *Model) create(p *packet, in, out *crossing, made *state.State) (*connection, *reason.Reason) {
	if in.program || out.program { // none is modelled
		return nil, reasonFor(reason.Divert)
	}
	n, why := m.enter(p, in, out)
	if why != nil {
		return nil, why
	}
	if len(m.states) >= int(m.rules.Options.MaxStates) {
		m.unmake(n)
		return nil, reasonFor(reason.StateLimit)
	}
	reply, why := m.reserve(p, translated(p, in, out).Reverse(), source(in, out), made)
	if why != nil {
		m.unmake(n)
		return nil, why
	}
	if owner, _ := m.find(p.tuple); reply == p.tuple || owner != nil {
		// owned by itself: its replies look like it, or by a connection that is bound
		// elsewhere. The index stays taken until the garbage collection.
		failed := &connection{dead: true, counted: n, pooled: m.takes(p, reply, in, out)}
		if m.wantsEndpoint(p, source(in, out)) {
			failed.endpoint, failed.unseen, failed.Tuple = true, true, [2]state.Tuple{p.tuple, reply}
		}
		m.states = append(m.states, failed)
		return nil, reasonFor(reason.TupleTaken)
	}
	c := &connection{State: state.State{
		Tuple:   [2]state.Tuple{p.tuple, reply},
		Phase:   firstPhase(p),
		Flags:   stateFlags(in, out),
		RuleIn:  m.number(in),
		RuleOut: m.number(out),
		Created: m.now,
	}, path: pathOf(in, out), counted: n, pooled: m.takes(p, reply, in, out)}
	c.endpoint = m.wantsEndpoint(p, source(in, out))
	c.tag = keptTag(c.Flags, in, out)
	c.ends = [2]bool{!out.due, !in.due}
	if made != nil {
		c.Index = made.Index
	}
	m.noteLogs(c, in, out)
	c.noteMarks(in, out)
	if c.Translated() {
		c.Flags |= state.NAT
	}
	c.Flow[0] = state.Flow{Packets: 1, Bytes: uint64(p.length()), Last: m.now, MaxWin: 1, Peer: state.PeerSynSent}
	c.Flow[1] = state.Flow{Last: m.now, MaxWin: 1}
	if c.endpoint {
		c.Flow[0].Flags = state.FlowMapped
	}
	if p.tuple.Proto == protoTCP {
		startTCP(&c.Flow[0], p)
	}
	if len(c.pooled) > 0 {
		c.Flow[0].Flags |= state.FlowPooled
	}
	c.noteCopies(in, out)
	m.keepQoS(c, keptQoS(c.Flags, in, out))
	m.keepScrubs(p, c, in, out, made)
	c.bind(0, in)
	c.bind(1, out)
	m.states = append(m.states, c)
	m.countInState(p, c, 0)
	m.countMade(in, out)
	return c, nil
}

// keptTag returns the tag of a connection's packets for rules that they meet: that of the
// side which keeps state.
func keptTag(flags state.Flags, in, out *crossing) string {
	switch {
	case flags&state.EvaluateOut != 0:
		return in.tag
	case flags&state.EvaluateIn == 0:
		return in.tag // for other interfaces, if the connection is bound
	case out.tag != in.tag:
		return out.tag
	}
	return ""
}

// translated returns the packet's tuple as it will leave, except for the source port,
// which reserve chooses.
func translated(p *packet, in, out *crossing) state.Tuple {
	t := p.tuple
	if in.other != nil {
		t = in.other.tuple
	}
	if rdr := destination(in, out); rdr != nil {
		t.Dst, t.DPort = rdr.addr, rdr.dport
	}
	if nat := source(in, out); nat != nil {
		t.Src = nat.addr
	}
	return t
}

// reserve finds the reply's tuple: the given one, or one with another port if the rules
// or an owner of that tuple need it.
func (m *Model) reserve(p *packet, reply state.Tuple, nat *target, made *state.State) (state.Tuple, *reason.Reason) {
	own := p.egress()
	static := nat != nil && nat.translation.StaticPort
	ports := portSet{low: natPortLow, high: natPortHigh}
	choose := nat != nil
	if m.wantsEndpoint(p, nat) {
		return m.reserveEndpoint(p, reply, nat, made)
	}
	if choose {
		ports = portsOf(nat)
	} else {
		choose = own && !m.free(reply)
	}
	if choose && !static && p.hasPortToChoose() {
		reply, ok := m.choosePort(p.tuple, reply, ports, made, nil)
		if !ok {
			return reply, reasonFor(reason.NATPorts)
		}
		return reply, nil
	}
	if !m.free(reply) {
		return reply, reasonFor(reason.TupleTaken)
	}
	return reply, nil
}

// A portSet is what nat-to chooses ports from.
type portSet struct {
	low, high     uint16
	stride, block uint8 // as in resolve.Translation
}

func portsOf(t *target) portSet {
	set := portSet{t.translation.PortLow, t.translation.PortHigh, t.translation.Stride, t.translation.Block}
	switch {
	case set.low == 0:
		return portSet{low: natPortLow, high: natPortHigh}
	case set.high == 0:
		set.high = set.low
	}
	return set
}

func (s portSet) has(port uint16) bool {
	return port >= s.low && port <= s.high && (s.stride == 0 || (port-s.low)%(1<<s.stride) < 1<<s.block)
}

// hasPortToChoose reports whether a packet has a port to choose. TCP and UDP have ports,
// an ICMP request has its id. A reply must keep the id of its request.
func (p *packet) hasPortToChoose() bool {
	return hasPortToChoose(p.family, p.tuple.Proto, p.icmpType)
}

func (a *ruleInput) hasPortToChoose() bool {
	return hasPortToChoose(a.family, a.tuple.Proto, a.icmpType)
}

func hasPortToChoose(family int, proto, icmpType uint8) bool {
	if translatesPorts(proto) {
		return true
	}
	request, query := icmpQuery(family, icmpType)
	return isICMP(family, proto) && query && request == icmpType
}

func firstPhase(p *packet) state.Phase {
	switch {
	case p.tuple.Proto == protoTCP:
		return state.TCPFirst
	case p.tuple.Proto == protoUDP:
		return state.UDPFirst
	case p.isICMP():
		return state.ICMPFirst
	}
	return state.OtherFirst
}

func stateFlags(in, out *crossing) state.Flags {
	var flags state.Flags
	if in.due {
		flags |= state.In
	}
	if out.due {
		flags |= state.Out
	}
	if in.due && !in.skipped && !in.keeps() {
		flags |= state.EvaluateIn
	}
	if out.due && !out.skipped && !out.keeps() {
		flags |= state.EvaluateOut
	}
	if in.allowsOptions() && out.allowsOptions() {
		flags |= state.Options
	}
	return flags
}

// wantsState reports whether a packet that passed makes a state.
func wantsState(p *packet, in, out *crossing) bool {
	return p.makesState() && (in.keeps() || out.keeps())
}

// makesState reports whether a packet belongs to an exchange. ICMP messages that are neither
// queries nor their replies do not, nor does a fragment for itself.
func (p *packet) makesState() bool {
	_, query := icmpQuery(p.family, p.icmpType)
	return !p.alone() && (query || !p.isICMP())
}
