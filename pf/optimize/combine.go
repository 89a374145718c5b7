package optimize

import "weir/pf/ast"

// threshold is the number of rules from which a table is faster than the rules.
const threshold = 6

// combined joins rules that differ only in their source address, or only in their
// destination address, if there are enough of them. The addresses become a table. The
// first rule decides which of the two it is.
func (b block) combined(table MakeTable) block {
	c := newCombiner(b)
	out := b[:0:0]
	for i, r := range b {
		if c.taken[i] {
			continue
		}
		members, end := c.members(int32(i))
		if len(members) < threshold {
			continue
		}
		c.gone = true
		hosts := make([]ast.Host, len(members))
		for k, m := range members {
			hosts[k] = end(b[m].ast).Hosts[0]
			hosts[k].Not = false
			c.removed[m] = true
		}
		c.removed[i] = false
		b[i] = r.withTable(end, table(hosts))
	}
	if !c.gone {
		return b
	}
	for i, r := range b {
		if !c.removed[i] {
			out = append(out, r)
		}
	}
	return out
}

// side selects one end of a rule's endpoints.
type side func(*ast.Rule) *ast.Endpoint

func source(r *ast.Rule) *ast.Endpoint      { return &r.From }
func destination(r *ast.Rule) *ast.Endpoint { return &r.To }

// withTable returns the rule with a table in place of one address.
func (r *rule) withTable(end side, named ast.Host) *rule {
	out, changed := *r, *r.ast
	to := end(&changed)
	named.Not = to.Hosts[0].Not
	to.Hosts = []ast.Host{named}
	out.ast = &changed
	out.from, out.to = addressOf(&changed.From), addressOf(&changed.To)
	return &out
}

// combiner knows which rules of a block differ only in one address.
type combiner struct {
	block   block
	froms   alike  // rules that differ in their source
	tos     alike  // rules that differ in their destination
	taken   []bool // taken by a table, even by one that is too small
	removed []bool
	gone    bool // a rule was removed
}

// alike holds lists of rules, each in the block's order. All lists share one array,
// because there may be as many lists as rules.
type alike struct {
	lists map[pair]list // by question and common address
	next  []int32       // the next rule in the same list; 0 after the last
}

type list struct{ first, last int32 }

func newAlike(rules int) alike {
	return alike{make(map[pair]list), make([]int32, rules)}
}

// add appends rule i to a list. i is larger than all members.
func (a *alike) add(k pair, i int32) {
	l, ok := a.lists[k]
	if !ok {
		l.first = i
	} else {
		a.next[l.last] = i
	}
	l.last = i
	a.lists[k] = l
}

func newCombiner(b block) *combiner {
	c := &combiner{
		block: b, froms: newAlike(len(b)), tos: newAlike(len(b)),
		taken: make([]bool, len(b)), removed: make([]bool, len(b)),
	}
	for i, r := range b {
		if r.from.listable() {
			c.froms.add(pair{r.numbers.question, r.numbers.to}, int32(i))
		}
		if r.to.listable() {
			c.tos.add(pair{r.numbers.question, r.numbers.from}, int32(i))
		}
	}
	return c
}

// listable reports whether an address can stand in a table.
func (a *address) listable() bool { return a.kind == prefix && a.bits > 0 }

// members takes the rules that become one with rule i, including i, and returns the side
// on which they differ. The next such rule decides the side.
func (c *combiner) members(i int32) ([]int32, side) {
	r := c.block[i]
	from, to := pair{r.numbers.question, r.numbers.to}, pair{r.numbers.question, r.numbers.from}
	var bySource, byDestination int32
	if r.from.listable() {
		bySource = c.behind(&c.froms, from, i)
	}
	if r.to.listable() {
		byDestination = c.behind(&c.tos, to, i)
	}
	switch {
	case bySource == 0 && byDestination == 0:
		return nil, nil
	case byDestination == 0 || bySource > 0 && bySource < byDestination:
		return c.take(&c.froms, from, i, bySource), source
	}
	return c.take(&c.tos, to, i, byDestination), destination
}

// behind returns the first rule of a list after i that is not taken, or 0. It shortens
// the list to begin there.
func (c *combiner) behind(a *alike, k pair, i int32) int32 {
	l, ok := a.lists[k]
	if !ok {
		return 0
	}
	at := l.first
	for at <= i || c.taken[at] {
		if at = a.next[at]; at == 0 {
			delete(a.lists, k)
			return 0
		}
	}
	if at != l.first {
		l.first = at
		a.lists[k] = l
	}
	return at
}

// take takes rule i and the rules of a list from rule at on.
func (c *combiner) take(a *alike, k pair, i, at int32) []int32 {
	members := []int32{i}
	for ; at != 0; at = a.next[at] {
		if !c.taken[at] {
			c.taken[at] = true
			members = append(members, at)
		}
	}
	delete(a.lists, k)
	return members
}
