package model

import (
	"math"
	"net/netip"
	"slices"

	"weir/internal/fw/limits"
	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// A SourceKey identifies a source: an address that opens states by a rule, or by any rule
// with source-track global.
type SourceKey struct {
	Addr netip.Addr
	Zone uint16
	Rule int // global number of the rule; -1: all with source-track global; LimiterSources - id: of a source limiter
}

// A Source is what is remembered of a source.
type Source struct {
	States      int
	Connections int    // those of the states whose handshake is complete
	Count       uint64 // of the threshold, in thousandths of a connection
	Last        uint32 // second of the last connection
	Over        bool   // too many connections or states; the daemon has not put it into the table yet
	Listed      bool   // of a limiter: it is in the table

	expires state.Tick // from when on it may go, without states
}

// sourceOver is SOURCE_OVER of bpf/config.h: how long a source that is over is kept
// without states.
const sourceOver = limits.SourceOver

// Sources returns the sources.
func (m *Model) Sources() map[SourceKey]*Source { return m.sources }

// limiting returns the rules that limit the states of two crossings: in, out.
func limiting(in, out *crossing) (rules [2]*resolve.Rule) {
	for side, c := range []*crossing{in, out} {
		if c.rule != nil && c.rule.State == resolve.KeepState && (c.rule.Limits != (resolve.Limits{}) || c.rule.Once || c.rule.MaxPktRate.N != 0) {
			rules[side] = c.rule
		}
	}
	return rules
}

// A counted is a state as the limits of its rules count it.
type counted struct {
	addr      netip.Addr
	zone      uint16
	rules     [2]*resolve.Rule // in, out; nil: no longer, or not limited
	connected [2]bool
	sloppy    bool         // all rules that keep state are
	limiters  []limiterKey // that count it
}

// enter counts a new state, or returns why it may not be made. Then it counts nowhere.
func (m *Model) enter(p *packet, in, out *crossing) (*counted, *reason.Reason) {
	n := &counted{addr: p.tuple.Src, zone: p.tuple.Zone}
	for side, rule := range limiting(in, out) {
		if rule == nil {
			continue
		}
		if side == 0 || rule != n.rules[0] { // by one rule it counts once
			if why := m.enterRule(n, rule); why != nil {
				m.uncount(n)
				return nil, why
			}
		}
		n.rules[side] = rule
	}
	if why := m.enterLimiters(n, in, out); why != nil {
		m.leaveLimiters(n, true)
		m.uncount(n)
		return nil, why
	}
	for _, c := range []*crossing{in, out} {
		if c.rule != nil && c.rule.Action == ast.Pass && c.rule.State == resolve.KeepState {
			if n.sloppy = c.rule.Limits.Sloppy; !n.sloppy {
				break
			}
		}
	}
	return n, nil
}

// trackSloppy tracks a segment by its flags alone, as pf does for sloppy states: it may see
// only one half of the connection.
func (m *Model) trackSloppy(p *packet, c *connection, d int) tracked {
	s, t, flags := &c.Flow[d], &c.Flow[1-d], p.tcp.flags
	if flags&flagSYN != 0 {
		raise(s, state.PeerSynSent)
	}
	if flags&flagFIN != 0 {
		raise(s, state.PeerClosing)
	}
	completes := false
	switch {
	case flags&flagACK == 0:
	case t.Peer == state.PeerSynSent:
		t.Peer = state.PeerEstablished
		completes = s.Peer >= state.PeerEstablished
	case t.Peer == state.PeerClosing:
		t.Peer = state.PeerFinWait2
	case s.Peer == state.PeerSynSent && t.Peer == state.PeerClosed:
		s.Peer, t.Peer = state.PeerEstablished, state.PeerEstablished
		completes = true
	case s.Peer == state.PeerClosing && t.Peer == state.PeerEstablished && t.Flags&state.FlowSeen == 0:
		t.Peer = state.PeerClosing
	}
	var over *reason.Reason
	if completes {
		over = m.connect(c.counted)
	}
	if flags&flagRST != 0 {
		s.Peer, t.Peer = state.PeerTimeWait, state.PeerTimeWait
	}
	c.Phase = tcpPhase(s.Peer, t.Peer)
	if over != nil {
		c.refused = *over
		return refused
	}
	return goesOn
}

func (m *Model) enterRule(n *counted, rule *resolve.Rule) *reason.Reason {
	l := &rule.Limits
	key := m.sourceKey(n, rule)
	s := m.sources[key]
	switch {
	case l.Tracking == resolve.NoTracking:
	case s == nil && l.Sources > 0 && m.sourcesOf(key.Rule) >= int(l.Sources):
		return reasonFor(reason.MaxSrcNodes)
	case s == nil && m.ruleSources() >= int(m.rules.Options.MaxSources):
		return reasonFor(reason.SrcNodes)
	case s != nil && l.SourceStates > 0 && s.States >= int(l.SourceStates):
		return reasonFor(reason.MaxSrcStates)
	case s != nil && s.Over:
		return reasonFor(reason.Overload)
	}
	full := l.Max > 0 && m.limited[rule] >= int(l.Max)
	if l.Tracking != resolve.NoTracking {
		if s == nil {
			s = &Source{Last: m.second(), expires: m.now}
			m.sources[key] = s
		}
		if full {
			s.keepUntil(m.now + m.keeps(rule))
		} else {
			s.States++
		}
	}
	if full {
		return reasonFor(reason.MaxStates)
	}
	m.limited[rule]++
	return nil
}

func (m *Model) sourceKey(n *counted, rule *resolve.Rule) SourceKey {
	key := SourceKey{n.addr, n.zone, -1}
	if rule.Limits.Tracking == resolve.TrackByRule {
		key.Rule = int(m.ruleBase) + m.numbers[rule]
	}
	return key
}

// sourcesOf returns how many sources a rule has.
func (m *Model) sourcesOf(rule int) (n int) {
	for key := range m.sources {
		if key.Rule == rule {
			n++
		}
	}
	return n
}

// keeps returns how many ticks a rule keeps a source without states.
func (m *Model) keeps(rule *resolve.Rule) state.Tick {
	seconds := rule.Limits.Timeouts.SrcTrack
	if seconds == 0 {
		seconds = m.rules.Options.Timeouts.SrcTrack
	}
	return state.Tick(seconds * state.TicksPerSecond)
}

// keepUntil keeps a source as long as the rule that keeps it longest.
func (s *Source) keepUntil(tick state.Tick) {
	if int32(tick-s.expires) > 0 {
		s.expires = tick
	}
}

func (m *Model) second() uint32 { return uint32(m.now) / state.TicksPerSecond }

// uncount takes a state back from what counts it.
func (m *Model) uncount(n *counted) {
	m.leaveLimiters(n, false)
	defer func() { n.rules = [2]*resolve.Rule{} }()
	for side, rule := range n.rules {
		if rule == nil || side == 1 && rule == n.rules[0] {
			continue
		}
		m.limited[rule]--
		s := m.sources[m.sourceKey(n, rule)]
		if rule.Limits.Tracking == resolve.NoTracking || s == nil {
			continue
		}
		s.States--
		s.keepUntil(m.now + m.keeps(rule))
		if n.connected[side] {
			s.Connections--
		}
	}
}

// timeoutOf returns a state's timeout: the shorter one of its rules, because pf has a state
// for each.
func (m *Model) timeoutOf(c *connection) uint32 {
	if c.counted == nil || c.counted.rules == [2]*resolve.Rule{} {
		return m.timeouts[c.Phase]
	}
	timeout := uint32(math.MaxUint32)
	for side, rule := range c.counted.rules {
		keeps := state.In << side
		switch {
		case c.Flags&(keeps|state.EvaluateIn<<side) != keeps:
		case rule == nil:
			timeout = min(timeout, m.timeouts[c.Phase])
		default:
			timeout = min(timeout, m.timeoutBy(rule, c.Phase))
		}
	}
	return timeout
}

// timeoutBy returns a rule's timeout for a phase.
func (m *Model) timeoutBy(rule *resolve.Rule, phase state.Phase) uint32 {
	t := &rule.Limits.Timeouts
	timeout := state.TimeoutsOf(t)[phase]
	if timeout == 0 {
		timeout = state.TimeoutsOf(&m.rules.Options.Timeouts)[phase]
	}
	part := m.part
	if t.AdaptiveStart != 0 {
		part = partOf(uint32(m.limited[rule]), t.AdaptiveStart, t.AdaptiveEnd)
	}
	return uint32(uint64(timeout) * part / 1024)
}

// partOf returns by how much adaptive timeouts are scaled, in 1024ths.
func partOf(n, start, end uint32) uint64 {
	switch {
	case end <= start || n <= start:
		return 1024
	case n >= end:
		return 0
	}
	return uint64(end-n) * 1024 / uint64(end-start)
}

// Part returns by how much all timeouts are scaled, in 1024ths.
func (m *Model) Part() uint32 { return uint32(m.part) }

// connect counts a connection whose handshake is complete. It returns the first limit that
// its source exceeds, or nil.
func (m *Model) connect(n *counted) (why *reason.Reason) {
	for side, rule := range n.rules {
		if rule == nil || rule.Limits.Tracking == resolve.NoTracking || n.connected[side] || side == 1 && rule == n.rules[0] {
			continue
		}
		n.connected[side] = true
		l, s := &rule.Limits, m.sources[m.sourceKey(n, rule)]
		s.Connections++
		var over *reason.Reason
		if l.Rate > 0 {
			if s.add(m.second(), l.Seconds); s.Count > uint64(l.Rate)*1000 {
				over = reasonFor(reason.MaxSrcRate)
			}
		}
		if l.Connections > 0 && s.Connections > int(l.Connections) {
			over = reasonFor(reason.MaxSrcConn)
		}
		if over != nil && l.Overload != "" {
			s.Over = true
		}
		if why == nil {
			why = over
		}
	}
	return why
}

// add counts a connection.
func (s *Source) add(now, span uint32) {
	r := rate{s.Count, s.Last}
	r.add(now, span)
	s.Count, s.Last = r.count, r.last
}

// sweepSources forgets the sources without states whose time is over.
func (m *Model) sweepSources() {
	for key, s := range m.sources {
		due := s.expires
		if s.Over || s.Listed && m.leavesTable(key) {
			due += sourceOver
		}
		if s.States == 0 && int32(m.now-due) >= 0 {
			if k := key.limiter(); k != nil {
				m.limiters[*k].Sources--
			}
			delete(m.sources, key)
		}
	}
}

// Overloaded returns the sources that are over, and notes that the daemon has seen them.
func (m *Model) Overloaded() (over []SourceKey) {
	for key, s := range m.sources {
		if key.limiter() != nil {
			if m.overLimit(key, s) {
				over = append(over, key)
			}
		} else if s.Over {
			s.Over = false
			over = append(over, key)
		}
	}
	slices.SortFunc(over, func(a, b SourceKey) int { return a.Addr.Compare(b.Addr) })
	return over
}

// Flush ends the states that the rules of overloaded sources flush.
func (m *Model) Flush(over []SourceKey) {
	for _, key := range over {
		if key.limiter() != nil {
			continue
		}
		rule := m.sequence[key.Rule-int(m.ruleBase)]
		for _, c := range m.states {
			mine := rule.Limits.Flush == ast.FlushGlobal || rule.Limits.Flush == ast.FlushRule && slices.Contains(c.counted.rules[:], rule)
			if mine && c.Tuple[0].Src == key.Addr {
				c.dead = true
			}
		}
	}
}

// Counts returns what a source counts.
func (s *Source) Counts() Source {
	counts := *s
	counts.expires = 0
	return counts
}
