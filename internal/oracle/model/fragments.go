package model

import (
	"cmp"
	"net/netip"
	"slices"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// maxRanges is the most separate pieces of one packet that are kept.
const maxRanges = 8

// A fragmented packet has passed with its first fragment (step 8).
type fragmented struct {
	src, dst netip.Addr
	id       uint32
	proto    uint8
	zone     uint16
	egress   bool // the box\'s own: nothing that comes in follows it

	at         uint32      // the interface that the first fragment crossed
	connection *connection // nil: the first fragment was passed without a state
	direction  int
	path       Path         // if there is no connection: what it counts under
	mark       uint32       // likewise: what it was routed by
	outMarks   resolve.Mark // likewise: with which it left
	chosen     *hop         // likewise: where a rule has sent it
	scrub      scrub        // likewise: how it was normalised
	started    state.Tick
	seen       []span // in order, apart from each other
	ends       []int  // of fragments that no more should follow
	whole      bool   // all have come
}

// A span is the bytes from start to before end.
type span struct{ start, end int }

func (m *Model) remembered(p *packet) *fragmented {
	for _, f := range m.fragments {
		if f.src == p.tuple.Src && f.dst == p.tuple.Dst && f.id == p.fragmentID &&
			f.proto == p.fragmentProto && f.zone == p.tuple.Zone && f.egress == p.egress() && !f.whole && m.isFresh(f) {
			return f
		}
	}
	return nil
}

func (m *Model) isFresh(f *fragmented) bool {
	return m.now.Since(f.started) < int32(m.rules.Options.Timeouts.Frag*state.TicksPerSecond)
}

// remember notes a first fragment that passes. A second first is dropped.
func (m *Model) remember(p *packet, c *connection, d int) *reason.Reason {
	if p.fragment != fragmentFirst {
		return nil
	}
	if m.remembered(p) != nil {
		return reasonFor(reason.FragmentOverlap)
	}
	m.fragments = append(m.fragments, &fragmented{
		src: p.tuple.Src, dst: p.tuple.Dst, id: p.fragmentID, proto: p.fragmentProto, zone: p.tuple.Zone, egress: p.egress(),
		at: p.iface.Index, connection: c, direction: d, path: p.path, mark: p.marks.On(p.mark), outMarks: p.outMarks, scrub: p.scrub, chosen: p.chosen, started: m.now, seen: []span{p.span()},
	})
	return nil
}

// span returns the bytes of the unfragmented packet that p holds. Only the last
// fragment may end between two multiples of 8.
func (p *packet) span() span {
	end := p.fragmentOffset + p.fragmentPayload
	return span{p.fragmentOffset, (end + 7) / 8 * 8}
}

// followFirst sends a later fragment the way of its first.
func (m *Model) followFirst(p *packet) Outcome {
	if m.leavesToTCX(p) {
		return p.pass(reason.UpCopy)
	}
	f := m.remembered(p)
	if f == nil {
		return p.drop(reason.FragmentOrphan)
	}
	c := f.connection
	if c != nil && !c.dead && m.expired(c) {
		c.dead = true
	}
	if c != nil && c.dead {
		return p.drop(reason.FragmentOrphan)
	}
	if c != nil && p.iface.Index != f.at && !c.fits(f.direction, p.egress(), p.iface.Index) {
		return p.drop(reason.StateMismatch)
	}
	if why := f.add(p.span(), !p.more); why != nil {
		return p.drop(*why)
	}
	if c != nil && p.egress() && c.changesFamily() {
		return p.drop(reason.AfTo)
	}
	if c != nil {
		m.count(p, c, f.direction)
		o := m.output(p, c, f.direction, reason.State, true)
		m.logCarried(p, &o)
		return o
	}
	p.path, p.mark, p.outMarks, p.scrub = f.path, f.mark, f.outMarks, f.scrub
	switch {
	case f.chosen != nil:
		r := m.toHop(f.chosen)
		if r.drop != nil {
			return p.drop(*r.drop)
		}
		return m.stateless(p, r, reason.Rule)
	case p.egress():
		return m.stateless(p, routed{}, reason.Rule) // the box has routed it
	}
	p.steered = f.mark
	r := m.route(p, p.tuple, p.steered)
	if r.up != nil {
		r.up = reasonFor(reason.Local)
	}
	if !p.group {
		r = m.open(r)
	}
	return m.stateless(p, r, reason.Rule)
}

// add notes bytes as seen. It returns a reason to drop for overlapping ones (RFC 5722),
// and for too many pieces. last: the packet ends there.
func (f *fragmented) add(s span, last bool) *reason.Reason {
	for _, old := range f.seen {
		if s.start < old.end && old.start < s.end {
			return reasonFor(reason.FragmentOverlap)
		}
	}
	seen := append(slices.Clone(f.seen), s)
	slices.SortFunc(seen, func(a, b span) int { return cmp.Or(a.start-b.start, a.end-b.end) })
	var joined []span
	for _, s := range seen {
		if n := len(joined); n > 0 && joined[n-1].end == s.start {
			joined[n-1].end = s.end
		} else {
			joined = append(joined, s)
		}
	}
	if len(joined) > maxRanges {
		return reasonFor(reason.FragmentMemory)
	}
	f.seen = joined
	if last {
		f.ends = append(f.ends, s.end)
	}
	f.whole = len(joined) == 1 && slices.Contains(f.ends, joined[0].end)
	return nil
}
