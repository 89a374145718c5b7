package dataplane

import (
	"fmt"
	"path/filepath"

	"weir/internal/fw/bpfload"
)

// mapRuleCounters is the map of bpf/rules/ruleset.h that new connections are counted
// in, one more than there are rules.
const mapRuleCounters = "rule_counters"

// A RuleCounter is what new connections have done to one rule of this generation.
type RuleCounter struct {
	Evaluations uint64 // crossings that reached the rule
	States      uint64 // states that it made as the deciding rule
}

// Rules returns the counters of the rules in force, by number.
func (v *View) Rules() ([]RuleCounter, error) {
	values, err := newPerCPU[xdpRuleCounter]()
	if err != nil {
		return nil, err
	}
	all := make([]RuleCounter, v.rules.MaxEntries())
	stops := make([]uint64, len(all))
	var asked uint64
	for i := range all {
		if err := v.rules.Lookup(uint32(i), values); err != nil {
			return nil, fmt.Errorf("read the counters of rule %d: %w", i, err)
		}
		for _, value := range values {
			stops[i] += value.Stops
			all[i].States += value.States
		}
		asked += stops[i]
	}
	// A rule was reached as often as the rules were asked, less the times that
	// one before it ended the evaluation.
	for i := range all {
		all[i].Evaluations = asked
		asked -= stops[i]
	}
	return all[:len(all)-1], nil // the last stands for no rule
}

func openRuleCounters(dir string) (*bpfload.Map, error) {
	return bpfload.OpenMap(filepath.Join(liveGeneration(dir), mapRuleCounters))
}
