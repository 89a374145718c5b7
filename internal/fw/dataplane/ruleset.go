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

	pages [2]int         // how many pages each half of table_pages may have in use
	gone  []*bpfload.Map // what no packet uses any more; finish closes them
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
	if err := l.write(p, next, next.set(p)); err != nil {
		return err
	}
	return l.finish()
}

// replaceRules replaces the program under traffic. p was made from it by Replace. Rules
// that stay keep counting. After an error the program before is in force. What is left of it
// otherwise, finish removes.
func (l *liveRules) replaceRules(p *ruleset.Program) error {
	next := l.next()
	err := l.writeRules(p, next)
	if err == nil {
		set := next.set(p)
		err = l.carryCounters(p, next, &set)
		if err == nil {
			err = l.write(p, next, set)
		}
	}
	if err != nil {
		l.limits.takeBack()
		return err
	}
	l.limits.settle()
	return nil
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
	if err := l.replaceIndex(set, p.Index); err != nil {
		return err
	}
	l.program, l.half = p, next
	return nil
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
	err := errors.Join(l.closeGone(), l.holder.Close(), l.changes.Close(), l.blank.Close())
	l.holder, l.changes, l.blank = nil, nil, nil
	return err
}

// finish removes what is left of rules and tables that no packet uses any more. After an error
// it can be called again.
func (l *liveRules) finish() error {
	return errors.Join(l.closeGone(), l.freePages())
}

func (l *liveRules) closeGone() error {
	var errs []error
	for _, m := range l.gone {
		errs = append(errs, m.Close())
	}
	l.gone = nil
	return errors.Join(errs...)
}

// swap replaces the rule set in force and gives the new one its own epoch. When it
// returns, no packet uses the old one: the kernel waits for that when a map in a map is
// replaced. After an error the old one is in force.
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
	l.gone = append(l.gone, l.holder)
	l.holder, l.set = holder, next
	return nil
}

// replaceIndex writes an index into pages beside those in use. It then replaces the rule
// set by next, which points there and has no changes. finish frees the pages before.
func (l *liveRules) replaceIndex(next xdpRuleSet, x *ruleset.TableIndex) error {
	half := l.otherPages()
	next.Tables4, next.Tables6 = rawTree(x.Tree4), rawTree(x.Tree6)
	next.TablesAt, next.Changes = uint32(half*tablePages*tablePageLines), 0
	err := l.writePages(half, x.Lines)
	if err == nil {
		err = l.swap(next)
	}
	if err != nil {
		return errors.Join(err, l.freePages())
	}
	l.dropChanges()
	return nil
}

// otherPages returns the half of table_pages that no packet searches.
func (l *liveRules) otherPages() int { return 1 - int(l.set.TablesAt/tablePageLines/tablePages) }

func rawTree(t ruleset.Tree) uint64 { return uint64(t.First) | uint64(t.Nodes)<<32 }

// writePages writes lines into new pages of a half that no packet searches.
func (l *liveRules) writePages(half int, lines []ruleset.Line) (err error) {
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
			return fmt.Errorf("write a page of tables: %w", err)
		}
		pages, lines = append(pages, page), lines[n:]
	}
	l.pages[half] = max(l.pages[half], len(pages)) // more, if some were not freed
	return l.objects.PutInner(mapTablePages, uint32(half*tablePages), pages)
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

// freePages frees the pages that no packet searches. It puts one empty page in their place.
// Removing a page would make the kernel wait as long as for all of these.
func (l *liveRules) freePages() (err error) {
	half := l.otherPages()
	count := l.pages[half]
	if count > 0 && l.blank == nil {
		if l.blank, err = l.newPage(nil); err != nil {
			return err
		}
	}
	err = l.objects.PutInner(mapTablePages, uint32(half*tablePages), slices.Repeat([]*bpfload.Map{l.blank}, count))
	if err != nil {
		return fmt.Errorf("free pages of tables: %w", err)
	}
	l.pages[half] = 0
	return nil
}

// dropChanges removes changed prefixes that no packet looks up.
func (l *liveRules) dropChanges() { l.gone, l.changes = append(l.gone, l.changes), nil }

// A tablePrefix is struct table_prefix of bpf/rules/prefix_map.h.
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
	l.dropChanges()
	l.changes = made
	return nil
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
