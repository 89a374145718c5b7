package dataplane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
)

// roomPerRule is roughly the most entries that one rule needs in a map.
const roomPerRule = 16

// Every generation has room for rules that are replaced under traffic: a share of its own
// size, and at least the entries of leastRoom.
const roomShare = 4

// halved lists the arrays that hold two rule sets, one in each half.
var halved = []string{"rule_order", "rule_carried", "rule_trees", "rule_lines", "rule_classes", "rule_vectors"}

// programSizes returns the entries that a program needs, by map, and the least room for
// more.
func programSizes(p *ruleset.Program) map[string][2]int {
	return map[string][2]int{
		"rules": {len(p.Rules), 1024}, "rule_order": {len(p.Order), 1024}, "rule_carried": {len(p.Order), 1024},
		"rule_trees": {len(p.Trees), 256}, "rule_lines": {len(p.Lines), 512},
		"rule_classes": {len(p.Classes), 1024}, "rule_vectors": {len(p.Vectors), 1024},
		"queue_pairs": {len(p.QueuePairs), 64}, "fingerprints": {len(p.Fingerprints), 1},
		"pools": {len(p.Pools), 64}, "pool_addresses": {len(p.Rows), 512}, "pool_turns": {2 * len(p.Pools), 128},
		mapPoolSticky: {stickySources(p), 64},
	}
}

// mapPoolSticky holds the addresses that sources keep, of the generation.
const mapPoolSticky = "pool_sticky"

// mostSticky is how many sources are remembered if a pool is sticky.
const mostSticky = 65536

// stickySources returns the number of sources that keep the address of a pool.
func stickySources(p *ruleset.Program) int {
	if slices.ContainsFunc(p.Pools, func(p ruleset.Pool) bool { return p.Sticky }) {
		return mostSticky
	}
	return 0
}

// ruleEntries returns the sizes of the maps that hold a program and room more rules.
func ruleEntries(p *ruleset.Program, room int) map[string]uint32 {
	entries := make(map[string]uint32)
	for name, n := range programSizes(p) {
		entries[name] = uint32(n[0] + max(n[0]/roomShare, n[1]) + room*roomPerRule)
		if slices.Contains(halved, name) {
			entries[name] *= 2
		}
	}
	entries["rules"] = min(entries["rules"], ruleset.MaxRules) // numbers in the rule cache have 16 bits
	entries[mapRuleCounters] = entries["rules"] + 1
	return entries
}

// fits returns an error that wraps ErrNoRoom if the maps have no room for a program.
func fits(maps map[string]*bpfload.Map, p *ruleset.Program) error {
	for name, n := range programSizes(p) {
		if maps[name] == nil { // a program that only evaluates rules lacks some of them
			continue
		}
		room := int(maps[name].MaxEntries())
		if slices.Contains(halved, name) {
			room /= 2
		}
		if n[0] > room {
			return fmt.Errorf("%d entries of %s, room for %d: %w", n[0], name, room, ErrNoRoom)
		}
	}
	return nil
}

// A half says where a rule set's entries begin in the arrays that hold two rule sets.
type half struct {
	maps   map[string]*bpfload.Map
	second bool
}

func (h half) base(name string) uint32 {
	if !h.second {
		return 0
	}
	return h.maps[name].MaxEntries() / 2
}

// write writes a program's arrays to the half that the rule set in force does not use.
// limits holds the numbers of its limits; without, its rules have none.
func (h half) write(p *ruleset.Program, limits []uint16) error {
	maps := h.maps
	if err := fits(maps, p); err != nil {
		return err
	}
	trees, lines, classes := h.base("rule_trees"), h.base("rule_lines"), h.base("rule_classes")
	forest := p.Move(lines, func(value uint32) uint32 {
		if value&ruleset.SpanTree != 0 {
			return value + trees
		}
		return value + classes
	})
	return errors.Join(
		fillArray(maps[mapRules], 0, p.Rules, func(r *ruleset.Rule) xdpRule { return rawRule(r, limits) }),
		fillArray(maps["rule_order"], h.base("rule_order"), places(p), func(o *xdpRuleOrder) xdpRuleOrder { return *o }),
		fillArray(maps["rule_carried"], h.base("rule_carried"), make([]xdpRuleCarried, len(p.Order)), func(c *xdpRuleCarried) xdpRuleCarried { return *c }),
		fillArray(maps["rule_trees"], trees, forest.Trees, func(t *ruleset.Tree) xdpRuleTree { return xdpRuleTree{First: t.First, Nodes: t.Nodes} }),
		fillArray(maps["rule_lines"], lines, forest.Lines, func(l *ruleset.Line) xdpTreeLine { return xdpTreeLine{Word: *l} }),
		fillArray(maps["rule_classes"], classes, p.Classes, h.rawClass),
		fillArray(maps["rule_vectors"], h.base("rule_vectors"), p.Vectors, rawBits),
		fillArray(maps["pool_addresses"], 0, p.Rows, rawRow),
		fillArray(maps["pools"], 0, p.Pools, rawPool),
		fillQueuePairs(maps["queue_pairs"], p.QueuePairs),
		fillFingerprints(maps["fingerprints"], p.Fingerprints),
	)
}

// places returns the index of each rule, and where it leads, by number.
func places(p *ruleset.Program) []xdpRuleOrder {
	order := make([]xdpRuleOrder, len(p.Order))
	for number, index := range p.Order {
		order[number] = xdpRuleOrder{Index: index, Next: p.Next[number]}
	}
	return order
}

func rawBits(b *ruleset.Bits) xdpRuleBits { return xdpRuleBits{Word: *b} }

func (h half) rawClass(c *ruleset.Class) xdpRuleClass {
	vectors := h.base("rule_vectors")
	return xdpRuleClass{Filled: c.Filled, Full: c.Full, Differs: c.Differs, Common: vectors + c.Common, Own: vectors + c.Own}
}

// set returns the rule set of a program in this half, without its tables.
func (h half) set(p *ruleset.Program) xdpRuleSet {
	vectors, classes := h.base("rule_vectors"), h.base("rule_classes")
	return xdpRuleSet{
		Stations: p.Set.Stations, Plains: p.Set.Plains,
		StationsAt: vectors + p.Set.StationsAt, PlainsAt: vectors + p.Set.PlainsAt,
		Rules: uint32(len(p.Order)), None: h.maps[mapRuleCounters].MaxEntries() - 1,
		OrderAt: h.base("rule_order"), TreesAt: h.base("rule_trees"),
		DstTablesAt: classes + p.Set.DstTablesAt, SrcTablesAt: classes + p.Set.SrcTablesAt, AsksTables: p.Set.AsksTables,
		BlockShift: p.Set.BlockShift, AsksMark: asByte(p.Set.AsksMark), AsksMore: p.Set.AsksMore, Fingerprints: uint32(len(p.Fingerprints)), Scrubs: uint32(p.Scrubs),
		Ethers: uint32(p.Ethers), All: classes + p.Set.All, EtherTables: asByte(p.Set.EtherTables), NoImplicit: asByte(!p.ImplicitPass),
	}
}

func rawRule(r *ruleset.Rule, limits []uint16) xdpRule {
	var limit uint16
	if r.Limit != 0 && limits != nil {
		limit = limits[r.Limit-1]
	}
	return xdpRule{
		Limit: limit,
		Flags: uint16(r.Flags), More: uint8(r.More), Tag: r.Tag, Tagged: r.Tagged,
		NatLow: r.NatLow, NatHigh: r.NatHigh, NatStride: r.NatStride, NatBlock: r.NatBlock,
		RdrLow: r.RdrLow, RdrHigh: r.RdrHigh, RdrBase: r.RdrBase,
		NatPool: r.NatPool, RdrPool: r.RdrPool,
		ReturnTtl: r.ReturnTTL, ReturnCode4: r.ReturnCode4, ReturnCode6: r.ReturnCode6,
		Prio: r.Prio, Queue: r.Queue,
		Scrub: uint8(r.Scrub), MinTtl: r.MinTTL, MaxMss: r.MaxMSS, SetTos: r.SetTOS,
		Mark: r.Mark, MarkMask: r.MarkMask, Marked: r.Marked, MarkedMask: r.MarkedMask,
		Facts: uint8(r.Facts), FactsMask: uint8(r.FactsMask), Chance: r.Chance, MaxSize: r.MaxSize, Tos: r.TOS, AsksDscp: r.AsksDSCP, AsksPrio: r.AsksPrio, Rtable: r.RTable, Late: uint16(r.Late),
		Route: uint8(r.Route), RoutePool: r.RoutePool, Enters: r.Enters, Inside: r.Inside,
		StateLimiter: r.StateLimiter, SourceLimiter: r.SourceLimiter, LimiterBlocks: asByte(r.StateBlocks) | asByte(r.SourceBlocks)<<1,
		Exported: asByte(r.Exported), Bridge: r.Bridge, Family: r.Family, SrcBits: r.SrcBits, DstBits: r.DstBits,
		Mac: rawMACs(r.MACs.Value), MacMask: rawMACs(r.MACs.Mask), MacNot: asByte(r.MACs.Not[0]) | asByte(r.MACs.Not[1])<<1,
	}
}

// rawMACs returns two addresses in the order of a frame.
func rawMACs(macs [2][6]byte) (raw [6]uint16) {
	for i := range raw {
		raw[i] = binary.NativeEndian.Uint16(macs[i/3][i%3*2:])
	}
	return raw
}

func rawRow(r *ruleset.Row) xdpPoolAddress {
	raw := xdpPoolAddress{Turn: r.Turn, Count: r.Count, Ifindex: r.Interface, Weight: max(r.Weight, 1)}
	if r.First.IsValid() { // otherwise the entry is not in use
		raw.First = rawAddr(r.First)
	}
	return raw
}

func rawPool(p *ruleset.Pool) xdpPool {
	return xdpPool{Rows4: rawRun(p.Rows4), Rows6: rawRun(p.Rows6), Ifindex: p.Interface, Kind: uint16(p.Kind), Sticky: uint16(asByte(p.Sticky)), Key: p.Key}
}

func rawRun(r ruleset.Run) uint64 { return uint64(r.First) | uint64(r.Count)<<32 }

// fillQueuePairs writes the numbers of a program's queues and removes others. A program
// that only evaluates rules has no such map.
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

// fillArray writes an array's values from index first on.
func fillArray[From, To any](m *bpfload.Map, first uint32, values []From, convert func(*From) To) error {
	return changeArray(m, func(array []To) {
		for i := range values {
			array[int(first)+i] = convert(&values[i])
		}
	})
}

// changeArray lets change modify an array's values.
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

// SetPools changes the addresses that translations choose from, as ruleset.Program.Refill
// returns them. It is called when the addresses of an interface in parentheses have
// changed. Each packet finds either the old addresses or the new ones.
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
	sticky := make(map[uint32]bool)
	err = changeArray(pools, func(array []xdpPool) {
		for _, c := range changes {
			sticky[uint32(c.Index)] = c.Pool.Sticky
			raw := rawPool(&c.Pool)
			atomic.StoreUint64(&array[c.Index].Rows4, raw.Rows4)
			atomic.StoreUint64(&array[c.Index].Rows6, raw.Rows6)
			atomic.StoreUint32(&array[c.Index].Ifindex, raw.Ifindex)
		}
	})
	if err != nil {
		return err
	}
	_, err = forgetSticky(d.objects.Maps[mapPoolSticky], func(s *xdpPoolSource, _ *xdpPoolGiven) bool { return sticky[s.Pool] })
	return err
}

// forgetSticky forgets which addresses pools have given to the sources for which match returns
// true. It returns how many these were.
func forgetSticky(m *bpfload.Map, match func(*xdpPoolSource, *xdpPoolGiven) bool) (int, error) {
	var gone []xdpPoolSource
	var key xdpPoolSource
	var given xdpPoolGiven
	all := m.Iterate()
	for all.Next(&key, &given) {
		if match(&key, &given) {
			gone = append(gone, key)
		}
	}
	if err := all.Err(); err != nil && !errors.Is(err, bpfload.ErrAborted) {
		return 0, fmt.Errorf("read %s: %w", m, err)
	}
	for i := range gone {
		if err := m.Delete(&gone[i]); err != nil && !errors.Is(err, bpfload.ErrNoKey) {
			return 0, fmt.Errorf("write %s: %w", m, err)
		}
	}
	return len(gone), nil
}
