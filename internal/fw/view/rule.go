package view

import (
	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
)

// Rule is a rule and its counters.
type Rule struct {
	rundir.RuleText
	id          uint32 // global
	Evaluations uint64 `json:"evaluations"` // new connections that reached it
	Packets     uint64 `json:"packets"`
	Bytes       uint64 `json:"bytes"`
	RuleCrossings
	States         uint64 `json:"states"`          // live ones that it matched, or decided
	StateCreations uint64 `json:"state_creations"` // that it ever made
}

// RuleCrossings is what crosses interfaces in and out under a rule, as pf counts it. A packet that meets
// the rule at both of its crossings counts twice here, and once in Rule.Packets.
type RuleCrossings struct {
	PacketsIn  uint64 `json:"packets_in"`
	BytesIn    uint64 `json:"bytes_in"`
	PacketsOut uint64 `json:"packets_out"`
	BytesOut   uint64 `json:"bytes_out"`
}

// crossings has what a path has counted for a rule that matched at a crossing: 0 in, 1 out. Replies cross in
// the other direction than the packets that the rule matched.
func (c *RuleCrossings) crossings(path *dataplane.Path, crossing int) {
	in, out := &path.Way[crossing], &path.Way[1-crossing]
	c.PacketsIn += in.Packets
	c.BytesIn += in.Bytes
	c.PacketsOut += out.Packets
	c.BytesOut += out.Bytes
}

// lists are FreeBSD's lists: ether rules, then as in pfctl translation rules and scrub rules.
var lists = []string{"ether", "nat", "rdr", "binat", "scrub"}

// shown returns the rules that users see, those of translation lists first. The two parts
// of a binat rule count as one.
func shown(rules []Rule) []Rule {
	all := make([]Rule, 0, len(rules))
	for _, list := range append(lists, "") {
		first := len(all)
		for i := range rules {
			if rules[i].List == list && rules[i].Shown() {
				all = append(all, rules[i])
			}
		}
		for i := range rules {
			if r := &rules[i]; r.Back && r.List == list && r.Nr < len(all)-first {
				all[first+r.Nr].count(r)
			}
		}
	}
	return all
}

// count adds the counters of another part of the rule. Every crossing evaluates both.
func (r *Rule) count(part *Rule) {
	r.Evaluations = max(r.Evaluations, part.Evaluations)
	r.Packets += part.Packets
	r.Bytes += part.Bytes
	r.PacketsIn += part.PacketsIn
	r.BytesIn += part.BytesIn
	r.PacketsOut += part.PacketsOut
	r.BytesOut += part.BytesOut
	r.States += part.States
	r.StateCreations += part.StateCreations
}
