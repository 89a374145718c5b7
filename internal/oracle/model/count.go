package model

import (
	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// pathMatches is how many match rules of one crossing are counted.
const pathMatches = 7

// A Path is the set of rules that packets are counted under: global numbers plus 1, by
// crossing, in and out. The deciding one of each is its last.
type Path [2][pathMatches + 1]uint32

// A Counter counts packets and bytes of IP packets.
type Counter struct{ Packets, Bytes uint64 }

// A RuleCounter has the counts of one rule from new connections, and from packets without
// a state.
type RuleCounter struct {
	Evaluations uint64 // crossings that reached it
	States      uint64 // states that it made as the deciding rule
}

// Paths returns the counters of each set of rules, by the direction of the packets in their
// state. Those without a state have direction 0.
func (m *Model) Paths() map[Path][2]Counter { return m.paths }

// Rules returns the counters of all rules.
func (m *Model) Rules() []RuleCounter { return m.ruleCounters }

// countPath counts a packet that rules passed or blocked.
func (m *Model) countPath(path Path, d int, p *packet) {
	c := m.paths[path]
	c[d].Packets++
	c[d].Bytes += uint64(p.length())
	m.paths[path] = c
}

// countBlocked counts a packet under the rules that matched at its crossings, if a rule
// dropped it.
func (m *Model) countBlocked(why *reason.Reason, in, out *crossing, p *packet) {
	if why != nil && (*why == reason.Block || *why == reason.Unloaded) {
		m.countPath(pathOf(in, out), 0, p)
	}
}

// pathOf returns the path for the rules that matched at the crossings.
func pathOf(in, out *crossing) Path {
	var path Path
	copy(path[0][:], in.matched)
	copy(path[1][:], out.matched)
	return path
}

// countMade counts a new state under the rules that keep it.
func (m *Model) countMade(in, out *crossing) {
	for _, c := range []*crossing{in, out} {
		if c.rule != nil && c.rule.Action == ast.Pass && c.rule.State == resolve.KeepState {
			m.ruleCounters[m.numbers[c.rule]].States++
		}
	}
}

// Timeouts returns the timeouts in force.
func (m *Model) Timeouts() state.Timeouts { return m.timeouts }

// Used returns how many indices of states are taken: by live states, and by dead ones
// until the garbage collection.
func (m *Model) Used() int { return len(m.states) }

// KillExpired marks expired states dead, so that longer timeouts cannot revive them. It
// returns their indices. With collect it also ends those that only the garbage collection
// ends.
func (m *Model) KillExpired(collect bool) map[uint32]bool {
	ended := make(map[uint32]bool)
	for _, c := range m.states {
		if m.expired(c) || collect && m.due(c) {
			c.dead = true
			ended[c.Index] = true
		}
	}
	return ended
}
