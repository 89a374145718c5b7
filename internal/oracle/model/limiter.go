package model

import (
	"net/netip"
	"slices"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// A limiterKey identifies a limiter.
type limiterKey struct {
	source bool
	id     uint8
}

// LimiterSources is SourceKey.Rule of the source limiter 0. Those of others follow below.
const LimiterSources = -1000

// limiter returns the id of the limiter that a source belongs to; nil: it is of rules.
func (k *SourceKey) limiter() *limiterKey {
	if k.Rule > LimiterSources {
		return nil
	}
	return &limiterKey{true, uint8(LimiterSources - k.Rule)}
}

// A Limiter is what a limiter counts.
type Limiter struct {
	Emptied             uint64 // nanoseconds of the clock: when its bucket was empty
	States, Sources     int
	Admitted            uint64
	Full, Fast, Crowded uint64 // refused
}

// Limiters returns the limiters that rules have asked, by kind and id.
func (m *Model) Limiters() map[bool]map[uint8]Limiter {
	all := map[bool]map[uint8]Limiter{false: {}, true: {}}
	for key, l := range m.limiters {
		all[key.source][key.id] = *l
	}
	return all
}

// definition returns what the rules say of a limiter; nil: nothing.
func (m *Model) definition(key limiterKey) *resolve.Limiter {
	for i := range m.rules.Limiters {
		if l := &m.rules.Limiters[i]; l.Source == key.source && l.ID == key.id {
			return l
		}
	}
	return nil
}

func (m *Model) limiterOf(key limiterKey, l *resolve.Limiter) *Limiter {
	if m.limiters[key] == nil {
		m.limiters[key] = &Limiter{Emptied: m.nanoseconds() - bucketOf(l)}
	}
	return m.limiters[key]
}

const second = 1_000_000_000

func (m *Model) nanoseconds() uint64 { return uint64(uint32(m.now)) * (second / state.TicksPerSecond) }

func bucketOf(l *resolve.Limiter) uint64 {
	if l.Rate == 0 {
		return 0
	}
	return uint64(l.Seconds) * second
}

func tokenOf(l *resolve.Limiter) uint64 {
	if l.Rate == 0 {
		return 0
	}
	return max(1, bucketOf(l)/uint64(l.Rate))
}

// has returns what is in a bucket.
func (m *Model) has(l *resolve.Limiter, emptied uint64) uint64 {
	return min(m.nanoseconds()-emptied, bucketOf(l))
}

// admits reports whether the limiters of a rule have room for a state. If not, the rule does
// not match, or with (block) the packet is dropped.
func (m *Model) admits(r *resolve.Rule, a *ruleInput) bool {
	if id := r.StateLimiter.ID; id != 0 {
		key := limiterKey{false, id}
		def := m.definition(key)
		if def == nil {
			return false
		}
		if counter := m.refuses(m.limiterOf(key, def), def); counter != nil {
			*counter++
			if r.StateLimiter.Block {
				a.refused = reasonFor(reason.StateLimiter)
			}
			return false
		}
	}
	if id := r.SourceLimiter.ID; id != 0 {
		key := limiterKey{true, id}
		def := m.definition(key)
		if def == nil {
			return false
		}
		if counter := m.refusesSource(m.limiterOf(key, def), def, a.packet.Src, a.packet.Zone); counter != nil {
			*counter++
			if r.SourceLimiter.Block {
				a.refused = reasonFor(reason.SourceLimiter)
			}
			return false
		}
	}
	return true
}

// refuses returns the counter of the reason for which a state limiter refuses a state, or nil.
func (m *Model) refuses(l *Limiter, def *resolve.Limiter) *uint64 {
	switch {
	case l.States >= int(def.Limit):
		return &l.Full
	case def.Rate != 0 && m.has(def, l.Emptied) < tokenOf(def):
		return &l.Fast
	}
	return nil
}

// refusesSource is the same for a source limiter and an address.
func (m *Model) refusesSource(l *Limiter, def *resolve.Limiter, addr netip.Addr, zone uint16) *uint64 {
	switch s := m.sources[limitedSource(def, addr, zone)]; {
	case s == nil && l.Sources >= int(def.Entries):
		return &l.Crowded
	case s == nil:
	case s.States >= int(def.Limit):
		return &l.Full
	case def.Rate != 0 && m.has(def, s.emptied()) < tokenOf(def):
		return &l.Fast
	}
	return nil
}

func limitedSource(def *resolve.Limiter, addr netip.Addr, zone uint16) SourceKey {
	bits := int(def.Inet6)
	if addr.Is4() {
		bits = int(def.Inet)
	}
	return SourceKey{netip.PrefixFrom(addr, bits).Masked().Addr(), zone, LimiterSources - int(def.ID)}
}

// emptied returns when the bucket of a limiter's source was empty. Its halves are where rules
// have a threshold.
func (s *Source) emptied() uint64 { return uint64(s.Last)<<32 | s.Count }

func (s *Source) setEmptied(at uint64) { s.Last, s.Count = uint32(at>>32), at&(1<<32-1) }

// enterLimiters counts a state under the limiters of both crossings. If they have one limiter,
// it counts once.
func (m *Model) enterLimiters(n *counted, in, out *crossing) *reason.Reason {
	for _, c := range []*crossing{in, out} {
		if c.rule == nil || c.rule.State != resolve.KeepState {
			continue
		}
		for _, key := range []limiterKey{{false, c.rule.StateLimiter.ID}, {true, c.rule.SourceLimiter.ID}} {
			if key.id == 0 || slices.Contains(n.limiters, key) {
				continue
			}
			if why := m.enterLimiter(n, key); why != nil {
				return why
			}
			n.limiters = append(n.limiters, key)
		}
	}
	return nil
}

func (m *Model) enterLimiter(n *counted, key limiterKey) *reason.Reason {
	def := m.definition(key)
	l := m.limiterOf(key, def)
	if !key.source {
		if counter := m.refuses(l, def); counter != nil {
			*counter++
			return reasonFor(reason.StateLimiter)
		}
		if def.Rate != 0 {
			l.Emptied = m.nanoseconds() - m.has(def, l.Emptied) + tokenOf(def)
		}
	} else {
		if counter := m.refusesSource(l, def, n.addr, n.zone); counter != nil {
			*counter++
			return reasonFor(reason.SourceLimiter)
		}
		m.enterSource(l, def, limitedSource(def, n.addr, n.zone))
	}
	l.States++
	l.Admitted++
	return nil
}

func (m *Model) enterSource(l *Limiter, def *resolve.Limiter, key SourceKey) {
	s := m.sources[key]
	if s == nil {
		s = &Source{expires: m.now}
		s.setEmptied(m.nanoseconds() - bucketOf(def))
		m.sources[key] = s
		l.Sources++
	}
	if def.Rate != 0 {
		s.setEmptied(m.nanoseconds() - m.has(def, s.emptied()) + tokenOf(def))
	}
	s.States++
	if def.Above != 0 && s.States > int(def.Above) && !s.Listed {
		s.Over = true
	}
}

// unmake takes a state back that is not made after all: its tokens come back.
func (m *Model) unmake(n *counted) {
	m.leaveLimiters(n, true)
	m.uncount(n)
}

// leaveLimiters takes a state back from its limiters.
func (m *Model) leaveLimiters(n *counted, unmade bool) {
	for _, key := range n.limiters {
		def, l := m.definition(key), m.limiters[key]
		l.States--
		if !key.source {
			if unmade {
				l.Emptied -= tokenOf(def)
			}
			continue
		}
		s := m.sources[limitedSource(def, n.addr, n.zone)]
		if s.States--; unmade {
			s.setEmptied(s.emptied() - tokenOf(def))
		}
		s.expires = m.now + state.Tick((2*def.Seconds+1)*state.TicksPerSecond)
	}
	n.limiters = nil
}

// ruleSources returns how many sources rules have.
func (m *Model) ruleSources() (n int) {
	for key := range m.sources {
		if key.limiter() == nil {
			n++
		}
	}
	return n
}

// leavesTable reports whether the daemon is to take a source out of its table some time.
func (m *Model) leavesTable(key SourceKey) bool {
	k := key.limiter()
	return k != nil && m.definition(*k).Below != 0
}

// overLimit notes that the daemon has put a source into its table, or has taken it out. It
// returns false if there was nothing to do.
func (m *Model) overLimit(key SourceKey, s *Source) bool {
	def := m.definition(*key.limiter())
	switch below := s.States < int(def.Below); {
	case s.Over && !below:
		s.Over, s.Listed = false, true
		return true
	case s.Listed && below:
		s.Listed = false
		return true
	}
	s.Over = false
	return false
}
