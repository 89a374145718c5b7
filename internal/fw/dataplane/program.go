package dataplane

import (
	"errors"
	"fmt"
	"sync/atomic"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
)

// roomPerRule is how many entries of each map a rule may need at most, about.
const roomPerRule = 16

// ruleEntries returns the sizes of the maps that hold a program, and as many
// rules more.
func ruleEntries(p *ruleset.Program, room int) map[string]uint32 {
	entries := make(map[string]uint32)
	for name, n := range map[string]int{
		"rules": len(p.Rules), "rule_trees": len(p.Trees), "rule_nodes": len(p.Nodes), "rule_spans": len(p.Spans),
		"rule_classes": len(p.Classes), "rule_vectors": len(p.Vectors),
		"queue_pairs": len(p.QueuePairs),
		"pools":       len(p.Pools), "pool_addresses": len(p.Rows), "pool_turns": 2 * len(p.Pools),
	} {
		entries[name] = uint32(max(n, 1) + room*roomPerRule)
	}
	entries[mapRuleCounters] = uint32(len(p.Rules) + room + 1)
	return entries
}

// writeProgram writes the arrays of a program into the maps of a generation.
func writeProgram(maps map[string]*bpfload.Map, p *ruleset.Program) error {
	return errors.Join(
		fillArray(maps["rules"], p.Rules, rawRule),
		fillArray(maps["rule_trees"], p.Trees, func(t *ruleset.Tree) xdpRuleTree {
			return xdpRuleTree{First: t.First, Nodes: t.Nodes}
		}),
		fillArray(maps["rule_nodes"], p.Nodes, func(n *ruleset.Node) xdpRuleNode { return xdpRuleNode{Key: *n} }),
		fillArray(maps["rule_spans"], p.Spans, func(s *ruleset.Spans) xdpRuleSpans { return xdpRuleSpans{Value: *s} }),
		fillArray(maps["rule_classes"], p.Classes, rawClass),
		fillArray(maps["rule_vectors"], p.Vectors, func(b *ruleset.Bits) xdpRuleBits { return xdpRuleBits{Word: *b} }),
		fillArray(maps["pool_addresses"], p.Rows, rawRow),
		fillArray(maps["pools"], p.Pools, rawPool),
		fillQueuePairs(maps["queue_pairs"], p.QueuePairs),
	)
}

func rawClass(c *ruleset.Class) xdpRuleClass {
	return xdpRuleClass{Filled: c.Filled, Full: c.Full, Differs: c.Differs, Common: c.Common, Own: c.Own}
}

func rawRule(r *ruleset.Rule) xdpRule {
	return xdpRule{
		Flags: uint16(r.Flags), Tag: r.Tag, Tagged: r.Tagged,
		NatLow: r.NatLow, NatHigh: r.NatHigh,
		RdrLow: r.RdrLow, RdrHigh: r.RdrHigh, RdrBase: r.RdrBase,
		NatPool: r.NatPool, RdrPool: r.RdrPool,
		ReturnTtl: r.ReturnTTL, ReturnCode4: r.ReturnCode4, ReturnCode6: r.ReturnCode6,
		Prio: r.Prio, Queue: r.Queue,
	}
}

func rawRow(r *ruleset.Row) xdpPoolAddress {
	raw := xdpPoolAddress{Turn: r.Turn, Count: r.Count}
	if r.First.IsValid() { // else a place that is not in use
		raw.First = rawAddr(r.First)
	}
	return raw
}

func rawPool(p *ruleset.Pool) xdpPool {
	return xdpPool{Rows4: rawRun(p.Rows4), Rows6: rawRun(p.Rows6), Ifindex: p.Interface}
}

func rawRun(r ruleset.Run) uint64 { return uint64(r.First) | uint64(r.Count)<<32 }

// fillQueuePairs writes the numbers of a program's queues, and takes out others. A
// program that only evaluates rules has no such map.
func fillQueuePairs(m *bpfload.Map, pairs map[uint16]ruleset.QueuePair) error {
	if m == nil && len(pairs) == 0 {
		return nil
	}
	var gone []uint32
	var number uint32
	var pair xdpQueuePair
	found := m.Iterate()
	for found.Next(&number, &pair) {
		if _, ok := pairs[uint16(number)]; !ok {
			gone = append(gone, number)
		}
	}
	if err := found.Err(); err != nil {
		return fmt.Errorf("read %s: %w", m, err)
	}
	for _, number := range gone {
		if err := m.Delete(number); err != nil {
			return fmt.Errorf("write %s: %w", m, err)
		}
	}
	for number, pair := range pairs {
		if err := m.Put(uint32(number), xdpQueuePair{Queue: pair.Queue, Ack: pair.Ack}); err != nil {
			return fmt.Errorf("write %s: %w", m, err)
		}
	}
	return nil
}

// fillArray writes the first values of an array.
func fillArray[From, To any](m *bpfload.Map, values []From, convert func(*From) To) error {
	return changeArray(m, func(array []To) {
		for i := range values {
			array[i] = convert(&values[i])
		}
	})
}

// changeArray gives an array's values to change.
func changeArray[T any](m *bpfload.Map, change func([]T)) error {
	memory, err := bpfload.MapMemory(m)
	if err != nil {
		return err
	}
	defer memory.Close()
	array, err := bpfload.Values[T](memory)
	if err != nil {
		return fmt.Errorf("write %s: %w", m, err)
	}
	change(array)
	return nil
}

// SetPools changes what translations choose from, as ruleset.Program.Refill says:
// the addresses of an interface in parentheses have changed. Packets find the
// old addresses or the new ones.
func (d *Dataplane) SetPools(changes []ruleset.PoolChange) error {
	rows, pools := d.objects.Maps["pool_addresses"], d.objects.Maps["pools"]
	err := changeArray(rows, func(array []xdpPoolAddress) {
		for _, c := range changes {
			for index, row := range c.Rows {
				array[index] = rawRow(&row)
			}
		}
	})
	if err != nil {
		return err
	}
	return changeArray(pools, func(array []xdpPool) {
		for _, c := range changes {
			raw := rawPool(&c.Pool)
			atomic.StoreUint64(&array[c.Index].Rows4, raw.Rows4)
			atomic.StoreUint64(&array[c.Index].Rows6, raw.Rows6)
			atomic.StoreUint32(&array[c.Index].Ifindex, raw.Ifindex)
		}
	})
}
