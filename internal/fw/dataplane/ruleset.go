package dataplane

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
)

// Maps whose contents are replaced under traffic (bpf/rules/ruleset.h and table.h).
const (
	mapRuleSets     = "rule_sets"
	mapTablePages   = "table_pages"
	mapTableChanges = "table_changes"
)

// Sizes of bpf/rules/table.h and ruleset.h.
const (
	tablePageLines = 4096
	tablePages     = ruleset.MaxTableLines / tablePageLines
	maxEpoch       = 1<<28 - 1
)

// A liveRules is the rule set that packets of a generation see. It does not change what
// it replaces until no packet uses it.
type liveRules struct {
	objects *bpfload.Objects
	program *ruleset.Program
	limits  *limitNumbers // nil: a program that only evaluates rules, and makes no states
	half    half          // the half of the arrays that holds program
	set     xdpRuleSet
	holder  *bpfload.Map // of set
	changes *bpfload.Map // map of set.Changes, or of the next slot; nil: none
	blank   *bpfload.Map // an empty page
	pages   int          // number that the index uses
}

// newLiveRules writes a program into the maps of a generation.
func newLiveRules(objects *bpfload.Objects, p *ruleset.Program, limits *limitNumbers) (*liveRules, error) {
	l := &liveRules{objects: objects, limits: limits}
	if err := l.load(p); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil // limiters that are gone stay until Commit
}

// load replaces the program and writes its rules and pools in place. No packet may use
// the old program, unless the new one was made from it by Replace.
func (l *liveRules) load(p *ruleset.Program) error {
	next := l.next()
	if err := l.writeRules(p, next); err != nil {
		return err
	}
	return l.write(p, next, next.set(p))
}

// replaceRules replaces the program under traffic. p was made from it by Replace. Rules
// that stay keep counting.
func (l *liveRules) replaceRules(p *ruleset.Program) error {
	next, before := l.next(), l.set
	err := l.writeRules(p, next)
	if err == nil {
		set := next.set(p)
		err = l.carryCounters(p, next, &set)
		if err == nil {
			err = l.write(p, next, set)
		}
	}
	if err != nil && l.set == before { // packets do not use them
		l.limits.takeBack()
		return err
	}
	l.limits.settle()
	return err
}

// writeRules writes a program's arrays. Its limits get their numbers.
func (l *liveRules) writeRules(p *ruleset.Program, next half) error {
	var numbers []uint16
	if l.limits != nil {
		var err error
		if numbers, err = l.limits.assign(p); err != nil {
			return err
		}
	}
	return next.write(p, numbers)
}

func (l *liveRules) next() half { return half{l.objects.Maps, l.program != nil && !l.half.second} }

func (l *liveRules) write(p *ruleset.Program, next half, set xdpRuleSet) error {
	before := l.set
	err := l.replaceIndex(set, p.Index)
	if err == nil || l.set != before { // else the rules are in force although something is left over
		l.program, l.half = p, next
	}
	return err
}

// carryCounters records what the rules have counted so far, so that later counts are attributed
// by the new order of rules. What packets count before the rule set changes is attributed
// by the new order too.
func (l *liveRules) carryCounters(p *ruleset.Program, next half, set *xdpRuleSet) error {
	c, err := readCounters(l.objects.Maps[mapRuleCounters], len(l.program.Rules))
	if err != nil {
		return err
	}
	before, err := l.carriedCounters()
	if err != nil {
		return err
	}
	evaluations := c.evaluations(&l.set, l.program.Order, before)
	byIndex := make(map[uint32]uint64, len(evaluations))
	for number, index := range l.program.Order {
		byIndex[index] = evaluations[number]
	}
	set.Asked = c.asked
	return fillArray(l.objects.Maps["rule_carried"], next.base("rule_carried"), p.Order, func(index *uint32) xdpRuleCarried {
		if int(*index) >= len(l.program.Rules) {
			return xdpRuleCarried{} // a new rule
		}
		return xdpRuleCarried{Evaluations: byIndex[*index], Stops: c.stops[*index]}
	})
}

// carriedCounters returns the counts that the rules in force had when they were put in force.
func (l *liveRules) carriedCounters() (carried []xdpRuleCarried, err error) {
	err = changeArray(l.objects.Maps["rule_carried"], func(array []xdpRuleCarried) {
		carried = slices.Clone(array[l.set.OrderAt:][:l.set.Rules])
	})
	return carried, err
}

// close gives limits and limiters back to the rules that stay in force, if these never were.
func (l *liveRules) close() error {
	l.limits.takeBack()
	err := errors.Join(l.holder.Close(), l.changes.Close(), l.blank.Close())
	l.holder, l.changes, l.blank = nil, nil, nil
	return err
}

// swap replaces the rule set in force and gives the new one its own epoch. When it
// returns, no packet uses the old one: the kernel waits for that when a map in a map is
// replaced.
func (l *liveRules) swap(next xdpRuleSet) error {
	next.Epoch = l.set.Epoch%maxEpoch + 1
	holder, err := l.objects.NewInner(mapRuleSets)
	if err != nil {
		return err
	}
	if err := holder.Put(uint32(0), &next); err != nil {
		return errors.Join(fmt.Errorf("write a rule set: %w", err), holder.Close())
	}
	if err := l.objects.Maps[mapRuleSets].Put(uint32(0), holder); err != nil {
		return errors.Join(fmt.Errorf("replace the rule set: %w", err), holder.Close())
	}
	err = l.holder.Close()
	l.holder, l.set = holder, next
	return err
}

// replaceIndex writes an index into pages beside those in use. It then replaces the rule
// set by next, which points there and has no changes.
func (l *liveRules) replaceIndex(next xdpRuleSet, x *ruleset.TableIndex) error {
	before, pages := int(l.set.TablesAt/tablePageLines), l.pages
	base := tablePages - before // the other half
	next.Tables4, next.Tables6 = rawTree(x.Tree4), rawTree(x.Tree6)
	next.TablesAt, next.Changes = uint32(base*tablePageLines), 0
	written, err := l.writePages(base, x.Lines)
	if err == nil {
		err = l.swap(next)
	}
	if err != nil {
		return errors.Join(err, l.freePages(base, written))
	}
	l.pages = written
	return errors.Join(l.dropChanges(), l.freePages(before, pages))
}

func rawTree(t ruleset.Tree) uint64 { return uint64(t.First) | uint64(t.Nodes)<<32 }

// writePages writes lines into new pages and returns how many.
func (l *liveRules) writePages(base int, lines []ruleset.Line) (count int, err error) {
	var pages []*bpfload.Map
	defer func() {
		for _, page := range pages {
			err = errors.Join(err, page.Close()) // the map of pages keeps it
		}
	}()
	for len(lines) > 0 {
		n := min(len(lines), tablePageLines)
		page, err := l.newPage(lines[:n])
		if err != nil {
			return 0, fmt.Errorf("write a page of tables: %w", err)
		}
		pages, lines = append(pages, page), lines[n:]
	}
	return len(pages), l.objects.PutInner(mapTablePages, uint32(base), pages)
}

func (l *liveRules) newPage(lines []ruleset.Line) (*bpfload.Map, error) {
	page, err := l.objects.NewInner(mapTablePages)
	if err != nil {
		return nil, err
	}
	err = changeArray(page, func(array []ruleset.Line) { copy(array, lines) })
	if err != nil {
		return nil, errors.Join(err, page.Close())
	}
	return page, nil
}

// freePages frees pages that no packet searches. It puts one empty page in their place.
// Removing a page would make the kernel wait as long as for all of these.
func (l *liveRules) freePages(base, count int) (err error) {
	if count > 0 && l.blank == nil {
		if l.blank, err = l.newPage(nil); err != nil {
			return err
		}
	}
	return l.objects.PutInner(mapTablePages, uint32(base), slices.Repeat([]*bpfload.Map{l.blank}, count))
}

// dropChanges removes changed prefixes that no packet looks up.
func (l *liveRules) dropChanges() error {
	err := l.changes.Close()
	l.changes = nil
	return err
}

// A tablePrefix is struct table_prefix of bpf/rules/table.h.
type tablePrefix struct {
	Bits, Family uint32
	Addr         xdpAddr
}

func rawPrefix(o *ruleset.Override) tablePrefix {
	a := o.Prefix.Addr()
	p := tablePrefix{Bits: 32 + uint32(o.Prefix.Bits()), Family: 6, Addr: rawAddr(a)}
	if a.Is4() {
		p.Bits, p.Family = p.Bits+96, 4
	}
	return p
}

// addChanges puts changed prefixes in force one by one.
func (l *liveRules) addChanges(changes []ruleset.Override) error {
	switch {
	case len(changes) == 0:
		return nil
	case l.set.Changes == 0:
		return l.replaceChanges(changes)
	}
	return putChanges(l.changes, changes)
}

// replaceChanges replaces the changed prefixes in force, all at once.
func (l *liveRules) replaceChanges(changes []ruleset.Override) (err error) {
	next := l.set
	next.Changes = 0
	var made *bpfload.Map
	if len(changes) > 0 {
		next.Changes = 1 + l.set.Changes%2 // the slot that is not in use
		if made, err = l.objects.NewInner(mapTableChanges); err != nil {
			return err
		}
		err = putChanges(made, changes)
		if err == nil {
			err = l.objects.Maps[mapTableChanges].Put(next.Changes-1, made)
		}
	}
	if err == nil {
		err = l.swap(next)
	}
	if err != nil {
		return errors.Join(err, made.Close())
	}
	err = l.dropChanges()
	l.changes = made
	return err
}

func putChanges(m *bpfload.Map, changes []ruleset.Override) error {
	for i := range changes {
		key := rawPrefix(&changes[i])
		if err := m.Put(unsafe.Slice((*byte)(unsafe.Pointer(&key)), unsafe.Sizeof(key)), changes[i].Set); err != nil {
			return fmt.Errorf("write that %s has changed: %w", changes[i].Prefix, err)
		}
	}
	return nil
}

// update writes a change of tables.
func (l *liveRules) update(u *ruleset.TableUpdate) error {
	if err := l.grow(u); err != nil {
		return err
	}
	switch {
	case u.Index != nil:
		return l.replaceIndex(l.set, u.Index)
	case u.Whole:
		return l.replaceChanges(u.Overrides)
	}
	return l.addChanges(u.Overrides)
}

// grow writes the classes of new sets, which no packet uses yet.
func (l *liveRules) grow(u *ruleset.TableUpdate) error {
	if len(u.Classes) == 0 {
		return nil
	}
	vectors, classes := l.half.base("rule_vectors"), l.half.base("rule_classes")
	err := changeArray(l.objects.Maps["rule_vectors"], func(array []xdpRuleBits) {
		for at, bits := range u.Vectors {
			array[vectors+at] = rawBits(&bits)
		}
	})
	if err != nil {
		return err
	}
	return changeArray(l.objects.Maps["rule_classes"], func(array []xdpRuleClass) {
		for at, c := range u.Classes {
			array[classes+at] = l.half.rawClass(&c)
		}
	})
}
