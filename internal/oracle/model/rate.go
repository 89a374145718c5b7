package model

import (
	"math"

	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// A rate is a threshold of pf.
type rate struct {
	count uint64 // thousandths of an event
	last  uint32 // second of the last one
}

// add is pf_add_threshold of pf: the count falls in proportion to the time since the last
// event, to 0 after the whole span.
func (r *rate) add(now, span uint32) {
	if passed := now - r.last; passed >= span {
		r.count = 0
	} else {
		r.count -= r.count * uint64(passed) / uint64(span)
	}
	r.count = min(r.count+1000, math.MaxUint32)
	r.last = now
}

// exceeds counts a packet under a rule's max-pkt-rate, and reports whether there are more
// than the rule allows.
func (m *Model) exceeds(rule *resolve.Rule) bool {
	if rule.MaxPktRate.N == 0 {
		return false
	}
	if m.rates[rule] == nil {
		m.rates[rule] = &rate{}
	}
	m.rates[rule].add(m.second(), rule.MaxPktRate.Seconds)
	return m.rates[rule].count > uint64(rule.MaxPktRate.N)*1000
}

// isTooFast counts a packet of a connection under the rules that keep its state. As in pf,
// only the direction that made it counts, and in both crossings.
func (m *Model) isTooFast(c *connection, d int) bool {
	if d != 0 || c.Flags&state.Log == 0 {
		return false
	}
	for _, rule := range c.counted.rules {
		if rule != nil && m.exceeds(rule) {
			return true
		}
	}
	return false
}
