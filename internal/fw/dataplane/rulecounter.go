package dataplane

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"weir/internal/fw/bpfload"
)

// mapRuleCounters is the map of bpf/rules/ruleset.h that counts new connections. It has
// one more entry than there are rules.
const mapRuleCounters = "rule_counters"

// A RuleCounter holds the counts of new connections for one rule of this generation.
type RuleCounter struct {
	Evaluations uint64 // crossings that reached the rule
	States      uint64 // states that it created as the deciding rule
}

// counters holds the counts of new connections, by the rules' index. The last entry
// counts the evaluations that no rule ended.
type counters struct {
	stops, states []uint64
	asked         uint64 // number of evaluations: the sum of all stops
}

// readCounters reads the first counters and the last one.
func readCounters(m *bpfload.Map, rules int) (*counters, error) {
	cpus, err := bpfload.CPUs()
	if err != nil {
		return nil, err
	}
	indices, values := make([]uint32, rules), make([]xdpRuleCounter, rules*cpus)
	var last []xdpRuleCounter
	if rules > 0 {
		_, err = m.BatchLookup(new(bpfload.MapBatch), indices, values, nil)
	}
	if err == nil || errors.Is(err, bpfload.ErrNoKey) {
		err = m.Lookup(m.MaxEntries()-1, &last)
	}
	if err != nil {
		return nil, fmt.Errorf("read the counters of rules: %w", err)
	}
	c := &counters{stops: make([]uint64, rules+1), states: make([]uint64, rules+1)}
	for i, value := range append(values, last...) {
		c.stops[i/cpus] += value.Stops
		c.states[i/cpus] += value.States
		c.asked += value.Stops
	}
	return c, nil
}

// evaluations returns how often each rule was reached, by number: the number of
// evaluations, less those that an earlier rule ended. carried holds the counts from rules
// in another order. Those of ether rules are not counted.
func (c *counters) evaluations(set *xdpRuleSet, order []uint32, carried []xdpRuleCarried) []uint64 {
	all := make([]uint64, len(order))
	asked := c.asked - set.Asked
	for number, index := range order {
		if number < int(set.Ethers) { // frames meet these; how often is not counted
			continue
		}
		all[number] = carried[number].Evaluations + asked
		asked -= c.stops[index] - carried[number].Stops
	}
	return all
}

// Rules returns the counters of the rules in force, by number.
func (v *View) Rules() ([]RuleCounter, error) {
	c, err := readCounters(v.rules.counters, int(v.rules.counters.MaxEntries())-1)
	if err != nil {
		return nil, err
	}
	set, order, carried, err := v.rules.inForce()
	if err != nil {
		return nil, err
	}
	all := make([]RuleCounter, len(order))
	for number, n := range c.evaluations(set, order, carried) {
		all[number] = RuleCounter{Evaluations: n, States: c.states[order[number]]}
	}
	return all, nil
}

// pinnedRules holds the maps of a generation that describe its rules.
type pinnedRules struct {
	counters, sets, order, carried, rules *bpfload.Map
}

func openRules(dir string) (_ *pinnedRules, err error) {
	r := &pinnedRules{}
	for name, m := range map[string]**bpfload.Map{
		mapRuleCounters: &r.counters, mapRuleSets: &r.sets, "rule_order": &r.order, "rule_carried": &r.carried, mapRules: &r.rules,
	} {
		if *m, err = bpfload.OpenMap(filepath.Join(liveGeneration(dir), name)); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return r, nil
}

func rulesOf(maps map[string]*bpfload.Map) *pinnedRules {
	return &pinnedRules{maps[mapRuleCounters], maps[mapRuleSets], maps["rule_order"], maps["rule_carried"], maps[mapRules]}
}

func (r *pinnedRules) close() error {
	return errors.Join(r.counters.Close(), r.sets.Close(), r.order.Close(), r.carried.Close(), r.rules.Close())
}

// inForce reads the rule set in force, the index of each rule, and the counts carried
// over.
func (r *pinnedRules) inForce() (*xdpRuleSet, []uint32, []xdpRuleCarried, error) {
	holder, err := bpfload.OpenInner(r.sets, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	defer holder.Close()
	set := new(xdpRuleSet)
	if err := holder.Lookup(uint32(0), set); err != nil {
		return nil, nil, nil, fmt.Errorf("read the rule set: %w", err)
	}
	var order []uint32
	var carried []xdpRuleCarried
	err = errors.Join(
		changeArray(r.order, func(array []xdpRuleOrder) {
			for _, o := range array[set.OrderAt:][:set.Rules] {
				order = append(order, o.Index)
			}
		}),
		changeArray(r.carried, func(array []xdpRuleCarried) { carried = slices.Clone(array[set.OrderAt:][:set.Rules]) }),
	)
	return set, order, carried, err
}

func openRuleCounters(dir string) (*bpfload.Map, error) {
	return bpfload.OpenMap(filepath.Join(liveGeneration(dir), mapRuleCounters))
}
