package ruleset

import (
	"errors"
	"fmt"
	"slices"

	"weir/pf/resolve"
)

// New marks a rule that was not in the old program.
const New = -1

// ErrOtherRules is returned (wrapped) by KeepOutside if rules outside of what may change
// differ.
var ErrOtherRules = errors.New("rules outside of anchors differ")

// KeepOutside returns the old number of each rule. Rules of the anchor, and of anchors in
// it, are New, because they are replaced.
func KeepOutside(old, rules []*resolve.Rule, anchor string) ([]int, error) {
	var outside []int
	inAnchor(old, anchor, func(number int, in bool) {
		if !in {
			outside = append(outside, number)
		}
	})
	keep := make([]int, 0, len(rules))
	same := true
	inAnchor(rules, anchor, func(number int, in bool) {
		switch {
		case in:
			keep = append(keep, New)
		case len(outside) == 0 || old[outside[0]].Text != rules[number].Text:
			same = false
		default:
			keep = append(keep, outside[0])
			outside = outside[1:]
		}
	})
	if !same || len(outside) > 0 {
		return nil, fmt.Errorf("replace the anchor %s: %w", anchor, ErrOtherRules)
	}
	return keep, nil
}

// KeepParts returns the old number of each rule. A rule outside of anchors that has the same
// text as before stays, wherever it stands now. If rules directly inside an anchor differ, all
// rules of that anchor are New.
func KeepParts(old, rules []*resolve.Rule) (keep []int) {
	p := parts{old: old, rules: rules, keep: make([]int, len(rules))}
	all, now := extent{0, len(old)}, extent{0, len(rules)}
	if !p.match(all, now) {
		p.pair(all, now)
	}
	return p.keep
}

// parts compares two rulesets, anchor by anchor.
type parts struct {
	old, rules []*resolve.Rule
	keep       []int // the result: for each of rules
}

// extent is a range of rules: first, and one behind the last.
type extent struct{ first, end int }

// match keeps the rules of a range and returns true if those outside of anchors are the
// same in both rulesets.
func (p *parts) match(old, now extent) bool {
	before, after := direct(p.old, old), direct(p.rules, now)
	if !slices.EqualFunc(before, after, func(i, k int) bool { return p.old[i].Text == p.rules[k].Text }) {
		return false
	}
	for n, i := range before {
		k := after[n]
		p.keep[k] = i
		inOld, in := inside(p.old, i), inside(p.rules, k)
		if p.match(inOld, in) {
			continue
		}
		for n := in.first; n < in.end; n++ {
			p.keep[n] = New
		}
	}
	return true
}

// pair keeps the rules of a range that have the text of an old one. Of several with one text
// the first stays the first.
func (p *parts) pair(old, now extent) {
	places := make(map[string][]int)
	for _, i := range direct(p.old, old) {
		places[p.old[i].Text] = append(places[p.old[i].Text], i)
	}
	for _, k := range direct(p.rules, now) {
		in := inside(p.rules, k)
		same := places[p.rules[k].Text]
		if len(same) > 0 {
			places[p.rules[k].Text] = same[1:]
			p.keep[k] = same[0]
			if p.match(inside(p.old, same[0]), in) {
				continue
			}
		} else {
			p.keep[k] = New
		}
		for n := in.first; n < in.end; n++ {
			p.keep[n] = New
		}
	}
}

// direct returns the rules of a range that are not in an anchor of it.
func direct(rules []*resolve.Rule, in extent) (numbers []int) {
	for n := in.first; n < in.end; n = inside(rules, n).end {
		numbers = append(numbers, n)
	}
	return numbers
}

// inside returns the rules in the anchor that a rule calls. Other rules have none.
func inside(rules []*resolve.Rule, number int) extent {
	end := number + 1
	if a := rules[number].Anchor; a != nil {
		end = max(end, a.End)
	}
	return extent{number + 1, end}
}

// inAnchor tells for each rule whether it is in an anchor. The rule that calls the anchor
// is outside.
func inAnchor(rules []*resolve.Rule, anchor string, tell func(number int, in bool)) {
	end := 0
	for n, r := range rules {
		tell(n, n < end)
		if r.Anchor != nil && r.Anchor.Path == anchor {
			end = max(end, r.Anchor.End)
		}
	}
}

// Replace compiles rules that will replace the program's rules under traffic. keep holds
// the old number of each rule, or New. Rules that stay keep their index, and so their
// counters, pools and global ids. The others get new ones, and so does a rule that chooses
// from other addresses than before. Tables keep their contents. The program itself does
// not change.
func (p *Program) Replace(rs *resolve.Ruleset, s Snapshot, keep []int) (*Program, error) {
	q, err := p.Reload(rs, s, keep)
	if err != nil {
		return nil, err
	}
	for _, name := range p.MadeTables() {
		q.KeepMade(name, p.tables.anchors[name])
	}
	return q, q.KeepTables(p.ChangedTables())
}

// Reload is Replace without the contents of tables: they hold what their definitions say. The caller
// keeps others with KeepMade and KeepTables.
func (p *Program) Reload(rs *resolve.Ruleset, s Snapshot, keep []int) (*Program, error) {
	q, err := compile(rs, s, p)
	if err != nil {
		return nil, err
	}
	if len(keep) != len(q.Order) {
		return nil, fmt.Errorf("%d rules, of which %d are told apart", len(q.Order), len(keep))
	}
	l := linker{from: q.Rules, pools: q.Pools, rows: q.Rows, layouts: q.layouts, to: q}
	q.Rules, q.Pools, q.Rows, q.layouts = slices.Clone(p.Rules), slices.Clone(p.Pools), slices.Clone(p.Rows), slices.Clone(p.layouts)
	for number, before := range keep {
		if before == New || !l.keeps(number, p, p.Order[before]) {
			q.Order[number] = uint32(len(q.Rules))
			q.Rules = append(q.Rules, l.rule(number))
			continue
		}
		index := p.Order[before]
		q.Order[number] = index
	}
	q.keepLimits(p)
	q.CountsStates = q.CountsStates || p.CountsStates // the programs go on counting
	return q, nil
}

// keeps reports whether a rule does what the one at an index of the old program did.
func (l *linker) keeps(number int, old *Program, index uint32) bool {
	return l.keepsPools(number, old, index) && l.keepsAnchor(number, old, index) && equalActions(l.from[number], old.Rules[index])
}

// keepLimits lets the rules that stay keep their limits, by name. Rules that are gone have
// none.
func (p *Program) keepLimits(before *Program) {
	positions := make(map[uint64]uint16, len(p.Limits))
	for i := range p.Limits {
		positions[p.Limits[i].Name] = uint16(i + 1)
	}
	inForce := make([]bool, len(before.Rules))
	for _, index := range p.Order {
		if int(index) < len(before.Rules) {
			inForce[index] = true
		}
	}
	for index := range before.Rules {
		r := &p.Rules[index]
		if r.Limit == 0 || !inForce[index] {
			r.Limit = 0
			continue
		}
		kept := before.Limits[r.Limit-1]
		if positions[kept.Name] == 0 {
			p.Limits = append(p.Limits, kept)
			positions[kept.Name] = uint16(len(p.Limits))
		}
		r.Limit = positions[kept.Name]
	}
}

// equalActions reports whether two rules do the same, apart from their pools.
func equalActions(a, b Rule) bool {
	if (a.NatPool == 0) != (b.NatPool == 0) || (a.RdrPool == 0) != (b.RdrPool == 0) {
		return false
	}
	a.NatPool, a.RdrPool, b.NatPool, b.RdrPool = 0, 0, 0, 0
	a.RoutePool, b.RoutePool = 0, 0
	a.Limit, b.Limit = 0, 0 // it keeps its own
	return a == b
}

// keepsAnchor reports whether the anchors of a rule have the numbers that they had.
func (l *linker) keepsAnchor(number int, p *Program, index uint32) bool {
	now, then := &l.from[number], &p.Rules[index]
	return now.Enters == then.Enters && now.Inside == then.Inside && (now.Flags^then.Flags)&AsksMore == 0
}

// keepsPools reports whether a rule chooses from the same addresses as one of the program
// before.
func (l *linker) keepsPools(number int, p *Program, index uint32) bool {
	now, then := l.from[number], p.Rules[index]
	return l.samePool(now.NatPool, p, then.NatPool) && l.samePool(now.RdrPool, p, then.RdrPool) &&
		l.samePool(now.routePool(), p, then.routePool())
}

// routePool returns the number of the pool of a rule's next hops, from 1. 0 is none.
func (r *Rule) routePool() uint32 {
	if r.Route == NoRoutes {
		return 0
	}
	return r.RoutePool + 1
}

func (l *linker) samePool(number uint32, p *Program, other uint32) bool {
	if number == 0 || other == 0 {
		return number == other
	}
	now, then := l.pools[number-1], p.Pools[other-1]
	rows := func(all []Row, run Run) []Row { return all[run.First:][:run.Count] }
	return now.Kind == then.Kind && now.Sticky == then.Sticky && now.Key == then.Key && now.Interface == then.Interface &&
		slices.Equal(rows(l.rows, now.Rows4), rows(p.Rows, then.Rows4)) &&
		slices.Equal(rows(l.rows, now.Rows6), rows(p.Rows, then.Rows6))
}

// A linker appends the pools of new rules to the old ones.
type linker struct {
	from    []Rule
	pools   []Pool
	rows    []Row
	layouts []poolLayout
	to      *Program
}

func (l *linker) rule(number int) Rule {
	r := l.from[number]
	r.NatPool, r.RdrPool = l.pool(r.NatPool), l.pool(r.RdrPool)
	if r.Route != NoRoutes {
		r.RoutePool = l.pool(r.routePool()) - 1
	}
	return r
}

func (l *linker) pool(number uint32) uint32 {
	if number == 0 {
		return 0
	}
	pool, layout := l.pools[number-1], l.layouts[number-1]
	for family, run := range []*Run{&pool.Rows4, &pool.Rows6} {
		place := &layout.places[family]
		size := place.Count
		if layout.dynamic {
			size *= 2
		}
		first := uint32(len(l.to.Rows))
		l.to.Rows = append(l.to.Rows, l.rows[place.First:place.First+size]...)
		run.First += first - place.First
		place.First = first
	}
	l.to.Pools = append(l.to.Pools, pool)
	l.to.layouts = append(l.to.layouts, layout)
	return uint32(len(l.to.Pools))
}
