package model

import (
	"encoding/binary"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// Limits of records (bpf/path/handoff.h).
const (
	maxRecords = 8
	recordLife = 10 * state.TicksPerSecond
)

// A recordKey is what the stack shows of a packet: its tuple with the destination
// translated and the source not. For a late fragment it is the addresses and the id.
type recordKey struct {
	tuple    state.Tuple
	fragment bool
	id       uint32
}

// A record stands for a packet that was handed to the stack to be forwarded, and for
// others of the same connection that look the same.
type record struct {
	used      bool
	at        state.Tick
	c         *connection // nil: without a state
	d         int
	multicast bool
	alone     bool         // a fragment that met the rules for itself
	qos       packetQoS    // what rules set for its last packet
	outMarks  resolve.Mark // likewise, without a state
	print     uint32       // tells the last packet from others in a quote
}

func (m *Model) live(r *record) bool { return r.used && m.now.Since(r.at) < recordLife }

// same reports whether two records are one. A connection that has taken the index of one
// that is gone also takes its record.
func (r *record) same(o *record) bool {
	return (r.c == nil) == (o.c == nil) && (r.c == nil || r.c.Index == o.c.Index) && r.d == o.d && r.multicast == o.multicast && r.alone == o.alone
}

// keyOf returns the key of a packet with a tuple.
func keyOf(p *packet, t state.Tuple) recordKey {
	if p.fragment != fragmentLater {
		return recordKey{tuple: t}
	}
	return fragmentKey(p, t)
}

// fragmentKey returns the key of a packet's late fragments.
func fragmentKey(p *packet, t state.Tuple) recordKey {
	return recordKey{tuple: state.Tuple{Src: t.Src, Dst: t.Dst, Proto: p.fragmentProto, Zone: t.Zone}, fragment: true, id: p.fragmentID}
}

// record notes a packet and returns the value of the mark for its record; MarkNone: all
// records of its tuple belong to others.
func (m *Model) record(key recordKey, r record) uint32 {
	r.used, r.at = true, m.now
	all := m.handoffs[key]
	if all == nil {
		all = make([]record, m.marks().Records())
		if key.fragment {
			all = all[:1]
		}
		m.handoffs[key] = all
	}
	free := -1
	for i := range all {
		switch {
		case m.live(&all[i]) && all[i].same(&r):
			all[i] = r
			return MarkRecord + uint32(i)
		case !m.live(&all[i]) && free < 0:
			free = i
		}
	}
	if free < 0 {
		return MarkNone
	}
	all[free] = r
	return MarkRecord + uint32(free)
}

// handOff hands a packet, with or without a connection, to the stack to be forwarded. The
// packet has its destination translated, as half says.
func (m *Model) handOff(p *packet, why reason.Reason, c *connection, d int, half state.Tuple) Outcome {
	value := MarkCame
	switch {
	case p.alone():
		value = m.record(keyOf(p, half), record{alone: true, qos: m.packetQoS(p), outMarks: p.outMarks})
	case p.fragment == fragmentLater:
		value = m.record(keyOf(p, half), record{c: c, d: d, outMarks: p.outMarks})
	case c == nil:
		value = m.record(keyOf(p, half), record{qos: m.packetQoS(p), outMarks: p.outMarks})
	case m.needsRecord(p, c, d, half):
		value = m.record(keyOf(p, half), record{c: c, d: d, qos: m.packetQoS(p), print: p.print()})
	case half != p.tuple:
		value = MarkLeaves
	}
	if value == MarkNone {
		return p.drop(reason.MarkTaken)
	}
	return Outcome{Verdict: Up, Reason: why, Mark: m.marks().Set(p.mark, value), Number: c.number(d), Frame: p.frame}
}

// needsRecord reports whether TCX egress could not find the packet's connection by the
// tuple that the stack shows, or not what the rules of a side without state gave it.
func (m *Model) needsRecord(p *packet, c *connection, d int, half state.Tuple) bool {
	return half != p.tuple && half != c.leaving(d) || c.evaluated() && m.packetQoS(p) != packetQoS{}
}

// evaluated reports whether a side of the connection keeps no state.
func (c *connection) evaluated() bool { return c.Flags&(state.EvaluateIn|state.EvaluateOut) != 0 }

// print returns what tells a packet from others with its tuple in any quote of it.
func (p *packet) print() uint32 {
	if p.family == 4 {
		return printOf(p.frame[p.l3:], p.frame[p.l4:])
	}
	return printOf(nil, p.frame[p.l4:])
}

func printOf(ip4, l4 []byte) (print uint32) {
	if len(ip4) >= 6 {
		print = uint32(binary.LittleEndian.Uint16(ip4[4:]))
	}
	if len(l4) >= 8 {
		print ^= binary.LittleEndian.Uint32(l4[4:])
	}
	return print
}

// handedOff handles what the stack forwards. TCX egress finds the packet's state or its
// record, translates the source as the state says, and evaluates no rules.
func (m *Model) handedOff(f *Frame, p *packet, made *state.State) Outcome {
	r := m.recordOf(f, p)
	if r == nil {
		return p.drop(reason.Guard)
	}
	if p.fragment == fragmentFirst && !r.alone { // the stack may have fragmented the packet, or reassembled it and fragmented it again
		if m.record(fragmentKey(p, p.tuple), record{c: r.c, d: r.d, multicast: r.multicast, outMarks: r.outMarks}) == MarkNone {
			return p.drop(reason.MarkTaken)
		}
	}
	if r.multicast {
		p.tuple.Zone = uint16(f.Interface) // each interface has a state of its own for it
		p.mark = m.marks().Set(p.mark, MarkNone)
		return m.handleParsed(p, made)
	}
	if r.c == nil {
		p.recorded = &r.qos
		p.mark = r.outMarks.On(p.mark)
		return p.out(reason.Marked)
	}
	whole := r.c.leaving(r.d)
	if r.c.dead || m.expired(r.c) || p.tuple.Dst != whole.Dst || p.tuple.Src != whole.Src && p.tuple.Src != r.c.Tuple[r.d].Src {
		return p.drop(reason.Guard) // it has waited, and its connection is gone
	}
	if h := r.c.chosen[r.d]; h != nil && !m.leavesBy(h, f.Interface) {
		return p.drop(reason.Guard)
	}
	p.qos = r.c.qos[r.d]
	p.scrub = scrub{leaves: r.c.scrubOf(r.d).leaves} // all else was done where it came in
	p.scrubHeader(atOut)
	if r.c.evaluated() && r.qos != (packetQoS{}) {
		p.recorded = &r.qos
	}
	p.mark = m.marks().Set(r.c.markOn(p.mark), MarkLeaves)
	if r.c.Flags&state.NAT != 0 {
		t := p.tuple
		t.Src, t.SPort = whole.Src, whole.SPort
		p.ip().write(t)
	}
	return p.out(reason.Marked)
}

// recordOf finds what was decided about a packet that the stack forwards; nil: nothing.
func (m *Model) recordOf(f *Frame, p *packet) *record {
	value := m.marks().Of(f.Mark)
	if value == MarkNone {
		return nil
	}
	if p.fragment == fragmentLater {
		value = MarkRecord
	}
	if p.fragment == fragmentFirst && value == MarkRecord { // it came in as one, or the stack has made it
		if r := m.recordAt(fragmentKey(p, p.tuple), MarkRecord); r != nil && r.alone {
			return r
		}
	}
	switch value {
	case MarkCame:
		if c, d := m.holder(p.tuple); c != nil {
			return &record{c: c, d: d}
		}
		return nil
	case MarkLeaves:
		if c, d := m.holder(p.tuple.Reverse()); c != nil {
			return &record{c: c, d: 1 - d}
		}
		return nil
	}
	return m.recordAt(keyOf(p, p.tuple), value)
}

// recordAt returns the live record of a key with a value of the mark.
func (m *Model) recordAt(key recordKey, value uint32) *record {
	all, i := m.handoffs[key], int(value-MarkRecord)
	if i >= len(all) || !m.live(&all[i]) {
		return nil
	}
	return &all[i]
}

// holder returns the connection of a tuple, expired or not.
func (m *Model) holder(t state.Tuple) (*connection, int) {
	for _, c := range m.states {
		for d := range c.Tuple {
			if !c.dead && c.Tuple[d] == t {
				return c, d
			}
		}
	}
	return nil, 0
}

// quotedRecord finds the connection of a packet that went up, from an error of the stack
// that quotes it. If its tuple has several records, it is the one whose last packet is
// quoted, else the latest; nil if that is dead.
func (m *Model) quotedRecord(q *quote) *record {
	var ip4 []byte
	if q.ip.family == 4 {
		ip4 = q.ip.header
	}
	print := printOf(ip4, q.ip.l4)
	var best *record
	all := m.handoffs[recordKey{tuple: q.tuple}]
	for i := range all {
		r := &all[i]
		switch {
		case !m.live(r) || r.c == nil:
			continue
		case r.print == print:
			return r.alive()
		case best == nil || r.at.Since(best.at) >= 0:
			best = r
		}
	}
	return best.alive()
}

// alive returns the record if its connection is live, else nil.
func (r *record) alive() *record {
	if r == nil || r.c.dead {
		return nil
	}
	return r
}
