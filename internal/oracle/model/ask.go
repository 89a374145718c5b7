package model

import (
	"net/netip"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// A Forwarding is what happens to a packet without a state, and why: the result for weir
// check --expect. Unlike an Outcome it also includes decisions of rules that the
// dataplane does not enforce yet.
type Forwarding struct {
	Pass      bool
	Reason    reason.Reason
	In, Out   CrossingResult
	State     bool       // the packet makes a state
	Tag       string     // its tag at the end
	Mark      uint32     // its mark at the end, without weir's own bits
	Prio      string     // the priority that rules gave it; "": none
	Queue     string     // likewise
	Local     bool       // it is for the box itself
	NoRoute   bool       // it may pass, but no route leads on
	Interface uint32     // index of the interface it leaves by; 0: none
	NextHop   netip.Addr // the next station there: a gateway or the destination
	Src, Dst  End        // as it leaves; if blocked, as the blocking rules saw it
	Answer    []byte     // the IP packet with which a block rule rejects; nil: none
}

// A CrossingResult is the result of the rules at one crossing.
type CrossingResult struct {
	Evaluated bool // false: the packet has no such crossing
	Skipped   bool // set skip
	Rule      *resolve.Rule
	Log       bool

	// Translation is the rule of FreeBSD's lists that has translated, or nil. If it
	// has Pass, no other rule was evaluated.
	Translation *resolve.TranslationRule
}

// An End is what one end of a packet can become: any of the addresses, with any port from
// Low to High. Ports of ICMP and of protocols without ports are 0.
type End struct {
	Addrs     []netip.Prefix
	Low, High uint16
}

// Rule returns the rule that decided, or nil. It is the rule that blocked the packet,
// else the one that let it in, else the one that let it out.
func (f *Forwarding) Rule() *resolve.Rule {
	in, out := f.In.Decided(), f.Out.Decided()
	if in == nil || !f.Pass && out != nil {
		return out
	}
	return in
}

// Decided returns the rule that decided at a crossing, or nil. It may be a translation
// rule with pass.
func (j *CrossingResult) Decided() *resolve.Rule { return j.Rule }

// Trace returns what happens to a packet if nothing is known of its connection. Interface
// is where it comes in, at any hook but TCXEgress; 0 is a packet of the box itself, whose
// frame is the bare IP packet. A packet from the box to itself meets no rules. The rules
// are also evaluated for packets that are dropped before them, so that the result can
// name the rule that blocks them too.
func (m *Model) Trace(f *Frame) Forwarding {
	clear(m.used)
	clear(m.rates)
	clear(m.limiters)
	asked, i, end := m.shown(f)
	if end != nil {
		return *end
	}
	p, why := parse(asked, i, m.box, m.rules)
	if why != nil {
		return Forwarding{Pass: why.IsPass(), Reason: *why}
	}
	p.from, p.mark = m.receivedBy(asked, p), asked.Mark
	m.bucket = bucket{tokens: 1, filled: m.now}
	before := m.sanity(p)
	passes := before == nil && m.implicit(p)
	in, out, r, refused := m.evaluateCrossings(p, true)
	w := m.forwarding(p, in, out, r)
	switch {
	case before != nil:
		w.Pass, w.Reason, w.State = false, *before, false
		if refused == nil {
			w.In.Rule, w.Out.Rule = nil, nil
		}
	case passes:
		w.Pass, w.Reason, w.State = true, reason.Implicit, false
		w.Local, w.NoRoute = !p.egress(), false
		if refused != nil {
			w.In.Rule, w.Out.Rule = nil, nil
		}
	case refused != nil:
		o := m.refuse(p, *refused, in, out)
		w.Pass, w.Reason, w.State = false, *refused, false
		if o.Verdict == Reject {
			w.Answer = o.Frame[p.l3:]
		}
	case r.drop != nil:
		w.Pass, w.Reason, w.State = false, *r.drop, false
	}
	return w
}

// TraceAll does this for each next hop that rules may choose, and for each combination of
// rules with a probability that match or do not. If there is nothing to choose, there is
// one result. Pools begin with their first address.
func (m *Model) TraceAll(f *Frame) []Forwarding {
	var all []Forwarding
	for m.way, m.ways = 0, 1; m.way < m.ways; m.way++ {
		for c := (&chances{}); ; {
			clear(m.turns)
			clear(m.sticky)
			m.chance = c.draw
			all = append(all, m.Trace(f))
			if !c.next() {
				break
			}
		}
	}
	m.way, m.chance = 0, nil
	return all
}

// shown returns the frame as its hook sees it, and the interface of that hook. For a
// packet of the box itself, this is the interface that it would leave by. end is the
// result if there is none.
func (m *Model) shown(f *Frame) (asked *Frame, i *Interface, end *Forwarding) {
	asked = &Frame{Hook: f.Hook, Interface: f.Interface, Mark: m.marks().Set(f.Mark, MarkNone), Bytes: append([]byte(nil), f.Bytes...)}
	if f.Interface != 0 {
		if i = m.box.byIndex(f.Interface); i == nil {
			return nil, nil, &Forwarding{Reason: reason.Interface}
		}
		return asked, i, nil
	}
	p, why := parse(asked, &Interface{L3: true}, m.box, m.rules)
	if why != nil {
		return nil, nil, &Forwarding{Pass: why.IsPass(), Reason: *why}
	}
	asked.Hook = TCXEgress
	stays := Forwarding{Pass: true, Reason: reason.Local, Local: true, Src: fixed(p.tuple.Src, p.tuple.SPort), Dst: fixed(p.tuple.Dst, p.tuple.DPort)}
	if m.box.owns(p.tuple.Dst) {
		return nil, nil, &stays
	}
	route := m.box.Route(p.tuple.Dst)
	if i = m.box.byIndex(route.Interface); route.Kind != RouteForward || i == nil {
		stays.Reason, stays.Local, stays.NoRoute = reason.UpRoute, false, true
		return nil, nil, &stays
	}
	asked.Interface = i.Index
	bare := *i
	bare.L3 = true
	return asked, &bare, nil
}

// forwarding returns the result for a packet that passes both crossings and has a route.
func (m *Model) forwarding(p *packet, in, out *crossing, r routed) Forwarding {
	w := Forwarding{
		Pass: true, Reason: passReason(in, out), In: in.result(), Out: out.result(),
		State: wantsState(p, in, out), Tag: out.tag,
		Src: fixed(p.tuple.Src, p.tuple.SPort), Dst: fixed(p.tuple.Dst, p.tuple.DPort),
	}
	if !out.due {
		w.Tag = in.tag
	}
	w.Mark = out.mark.On(in.mark.On(p.mark))
	w.Prio, w.Queue = out.qos.or(in.qos).of(p)
	m.ends(&w, p, in, out)
	inside := translated(p, in, out)
	if in.other != nil {
		w.Out = CrossingResult{}
	}
	switch {
	case p.egress() && r.route.Interface != 0:
		w.Interface, w.NextHop = r.route.Interface, r.route.hop(inside)
	case p.egress():
		route := m.box.Route(inside.Dst)
		w.Interface, w.NextHop = p.iface.Index, route.hop(inside)
	case r.up != nil:
		w.Local = in.diverted() || m.box.owns(inside.Dst) || m.box.broadcast(inside.Dst) || inside.Dst.IsMulticast() || inside.Dst == limited
		w.NoRoute = !w.Local
	case r.drop == nil && r.route.Interface != 0:
		w.Interface, w.NextHop = r.route.Interface, r.route.hop(inside)
	}
	return w
}

// fixed returns an end that is not translated.
func fixed(a netip.Addr, port uint16) End {
	return End{Addrs: []netip.Prefix{netip.PrefixFrom(a, a.BitLen())}, Low: port, High: port}
}

// hop returns the next station: the gateway, or the destination itself.
func (r *Route) hop(inside state.Tuple) netip.Addr {
	if r.Gateway.IsValid() {
		return r.Gateway
	}
	return inside.Dst
}

// ends sets what a packet's addresses and ports become.
func (m *Model) ends(w *Forwarding, p *packet, in, out *crossing) {
	family := p.family
	if in.other != nil {
		w.Src, w.Dst = in.other.src, in.other.dst
		return
	}
	if rdr := destination(in, out); rdr != nil && rdr.addr.IsValid() {
		w.Dst = End{m.candidates(rdr, family), rdr.dport, rdr.dport}
	}
	if nat := source(in, out); nat != nil && nat.addr.IsValid() {
		w.Src.Addrs = m.candidates(nat, family)
		if !nat.translation.StaticPort && p.hasPortToChoose() {
			ports := portsOf(nat)
			w.Src.Low, w.Src.High = ports.low, ports.high
		}
	}
}

// candidates returns all addresses of a family that a translation may choose.
func (m *Model) candidates(t *target, family int) []netip.Prefix {
	if t.translation.Choice.Type == resolve.Bitmask {
		return []netip.Prefix{netip.PrefixFrom(t.addr, t.addr.BitLen())}
	}
	var rows []netip.Prefix
	for i := range t.translation.Addrs {
		rows = append(rows, m.pool(&t.translation.Addrs[i], family)...)
	}
	return rows
}

func (c *crossing) result() CrossingResult {
	return CrossingResult{Evaluated: c.due, Skipped: c.skipped, Rule: c.rule, Log: c.log, Translation: c.translation}
}
