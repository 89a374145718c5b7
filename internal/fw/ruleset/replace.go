package ruleset

import (
	"errors"
	"fmt"
	"slices"

	"weir/pf/resolve"
)

// New marks a rule that was not in the old program.
const New = -1

// ErrOtherRules is returned (wrapped) by KeepOutside if rules outside the anchor differ.
var ErrOtherRules = errors.New("rules outside of the anchor differ")

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
// counters, pools and global ids. The others get new ones. Tables keep their contents.
// The program itself does not change.
func (p *Program) Replace(rs *resolve.Ruleset, s Snapshot, keep []int) (*Program, error) {
	q, err := compile(rs, s, p)
	if err != nil {
		return nil, err
	}
	if len(keep) != len(q.Order) {
		return nil, fmt.Errorf("%d rules, of which %d are told apart", len(q.Order), len(keep))
	}
	if err := q.KeepTables(p.ChangedTables()); err != nil {
		return nil, err
	}
	l := linker{from: q.Rules, pools: q.Pools, rows: q.Rows, layouts: q.layouts, to: q}
	q.Rules, q.Pools, q.Rows, q.layouts = slices.Clone(p.Rules), slices.Clone(p.Pools), slices.Clone(p.Rows), slices.Clone(p.layouts)
	for number, before := range keep {
		if before == New {
			q.Order[number] = uint32(len(q.Rules))
			q.Rules = append(q.Rules, l.rule(number))
			continue
		}
		index := p.Order[before]
		if !equalActions(l.from[number], p.Rules[index]) {
			return nil, fmt.Errorf("rule %d is not what rule %d was", number, before)
		}
		q.Order[number] = index
	}
	return q, nil
}

// equalActions reports whether two rules do the same, apart from their pools.
func equalActions(a, b Rule) bool {
	if (a.NatPool == 0) != (b.NatPool == 0) || (a.RdrPool == 0) != (b.RdrPool == 0) {
		return false
	}
	a.NatPool, a.RdrPool, b.NatPool, b.RdrPool = 0, 0, 0, 0
	return a == b
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
