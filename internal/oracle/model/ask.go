package model

import (
	"net/netip"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// A Forwarding is what becomes of a packet that no state knows, and why: the
// answer to weir check --expect. Unlike an Outcome it also tells what rules
// decide that the dataplane does not enforce yet.
type Forwarding struct {
	Pass      bool
	Reason    reason.Reason
	In, Out   Judgement
	State     bool       // a state is made of it
	Tag       string     // that it bears at the end
	Local     bool       // the box itself is where it ends
	NoRoute   bool       // it may pass, and no route leads on
	Interface uint32     // index of the one it leaves by; 0: none
	NextHop   netip.Addr // who it is handed to there: a gateway or the destination
	Src, Dst  End        // as it leaves; of a blocked one, as the rules that blocked it saw it
	Answer    []byte     // the IP packet that a block rule answers with; nil: none
}

// A Judgement is what the rules have said at one crossing.
type Judgement struct {
	Asked   bool // false: the packet has no such crossing
	Skipped bool // set skip
	Rule    *resolve.Rule
	Log     bool

	// Translation is the rule of FreeBSD's lists that has translated, nil if none.
	// Where it has Pass, no other rule was asked.
	Translation *resolve.TranslationRule
}

// An End is what one end of a packet can become: any of the addresses, with any
// port from Low to High. Ports of ICMP and of protocols without are 0.
type End struct {
	Addrs     []netip.Prefix
	Low, High uint16
}

// Rule is the one that decided, nil if none did: the one that blocked a packet,
// else the one that let it in, else the one that let it out.
func (f *Forwarding) Rule() *resolve.Rule {
	in, out := f.In.Decided(), f.Out.Decided()
	if in == nil || !f.Pass && out != nil {
		return out
	}
	return in
}

// Decided is the rule that decided at a crossing, nil if none did.
func (j *Judgement) Decided() *resolve.Rule {
	if j.Rule == nil && j.Translation != nil && j.Translation.Pass {
		return &j.Translation.Rule
	}
	return j.Rule
}

// Ask tells what would become of a packet if nothing were known of its
// connection. Interface is where it comes in, at any hook but TCXEgress; 0 is a
// packet of the box itself, whose frame is the bare IP packet. One to itself is
// not judged. The rules are also asked about what is dropped before
// them, so that the answer can name the one which blocks it too.
func (m *Model) Ask(f *Frame) Forwarding {
	asked, i, end := m.shown(f)
	if end != nil {
		return *end
	}
	p, why := parse(asked, i, m.box)
	if why != nil {
		return Forwarding{Pass: why.IsPass(), Reason: *why}
	}
	p.from = m.receivedBy(asked, p)
	m.bucket = bucket{tokens: 1, filled: m.now}
	before := m.sanity(p)
	passes := before == nil && m.implicit(p)
	in, out, r, refused := m.cross(p, true)
	w := m.told(p, in, out, r)
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
		if o.Verdict == Answer {
			w.Answer = o.Frame[p.l3:]
		}
	case r.drop != nil:
		w.Pass, w.Reason, w.State = false, *r.drop, false
	}
	return w
}

// AskAll tells it for each next hop that rules let a packet go by, and for each
// way in which rules with a probability may match it or not: one answer where
// there is nothing to choose. Pools begin with their first address.
func (m *Model) AskAll(f *Frame) []Forwarding {
	var all []Forwarding
	for m.way, m.ways = 0, 1; m.way < m.ways; m.way++ {
		for c := (&chances{}); ; {
			clear(m.turns)
			m.chance = c.draw
			all = append(all, m.Ask(f))
			if !c.next() {
				break
			}
		}
	}
	m.way, m.chance = 0, nil
	return all
}

// shown is the frame as its hook sees it, and the interface of that hook: of a
// packet of the box itself the one that it would leave by. end is the answer if
// there is none.
func (m *Model) shown(f *Frame) (asked *Frame, i *Interface, end *Forwarding) {
	asked = &Frame{Hook: f.Hook, Interface: f.Interface, Bytes: append([]byte(nil), f.Bytes...)}
	if f.Interface != 0 {
		if i = m.box.byIndex(f.Interface); i == nil {
			return nil, nil, &Forwarding{Reason: reason.Interface}
		}
		return asked, i, nil
	}
	p, why := parse(asked, &Interface{L3: true}, m.box)
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

// told is what the crossings and the route say of a packet that passes both.
func (m *Model) told(p *packet, in, out *crossing, r routed) Forwarding {
	w := Forwarding{
		Pass: true, Reason: passReason(in, out), In: in.told(), Out: out.told(),
		State: wantsState(p, in, out), Tag: out.tag,
		Src: fixed(p.tuple.Src, p.tuple.SPort), Dst: fixed(p.tuple.Dst, p.tuple.DPort),
	}
	if !out.due {
		w.Tag = in.tag
	}
	m.ends(&w, p, in, out)
	inside := translated(p, in, out)
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

// fixed is an end that nothing translates.
func fixed(a netip.Addr, port uint16) End {
	return End{Addrs: []netip.Prefix{netip.PrefixFrom(a, a.BitLen())}, Low: port, High: port}
}

// hop is who a packet is handed to: the gateway, or its destination itself.
func (r *Route) hop(inside state.Tuple) netip.Addr {
	if r.Gateway.IsValid() {
		return r.Gateway
	}
	return inside.Dst
}

// ends tells what a packet's addresses and ports become.
func (m *Model) ends(w *Forwarding, p *packet, in, out *crossing) {
	family := p.family
	if in.other != nil {
		family = in.other.family
		w.Src, w.Dst = in.other.src, in.other.dst
	}
	if rdr := destination(in, out); rdr != nil && rdr.addr.IsValid() {
		w.Dst = End{m.candidates(rdr, family), rdr.dport, rdr.dport}
	}
	if nat := source(in, out); nat != nil && nat.addr.IsValid() {
		w.Src.Addrs = m.candidates(nat, family)
		if !nat.translation.StaticPort && p.hasPortToChoose() {
			w.Src.Low, w.Src.High = portRange(nat)
		}
	}
}

// candidates are all addresses of a family that a translation may choose.
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

func (c *crossing) told() Judgement {
	return Judgement{Asked: c.due, Skipped: c.skipped, Rule: c.rule, Log: c.log, Translation: c.translation}
}
