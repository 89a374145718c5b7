package optimize

import "weir/pf/ast"

// threshold is how many rules a table must stand for to be faster than they.
const threshold = 6

// combined makes one rule of those that differ in their source addresses only,
// or in their destination addresses only, if they are enough: its addresses are
// a table. The first rule says which of the two it is.
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

// side picks one end of a rule's endpoints.
type side func(*ast.Rule) *ast.Endpoint

func source(r *ast.Rule) *ast.Endpoint      { return &r.From }
func destination(r *ast.Rule) *ast.Endpoint { return &r.To }

// withTable gives the rule with a table for one of its addresses.
func (r *rule) withTable(end side, named ast.Host) *rule {
	out, changed := *r, *r.ast
	to := end(&changed)
	named.Not = to.Hosts[0].Not
	to.Hosts = []ast.Host{named}
	out.ast = &changed
	out.from, out.to = addressOf(&changed.From), addressOf(&changed.To)
	return &out
}

// combiner knows which rules of a block are the same but for one address.
type combiner struct {
	block   block
	froms   alike  // rules that differ in their sources
	tos     alike  // in their destinations
	taken   []bool // by a table, even if it is too small
	removed []bool
	gone    bool // something is
}

// alike are lists of rules, each in the block's order. The lists lie in one
// array, as there may be as many of them as rules.
type alike struct {
	lists map[pair]list // by question and the address that they have in common
	next  []int32       // the rule behind a rule in its list, 0 behind the last one
}

type list struct{ first, last int32 }

func newAlike(rules int) alike {
	return alike{make(map[pair]list), make([]int32, rules)}
}

// add puts rule i, which is behind all that are there, into a list.
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

// members takes the rules that rule i becomes one with, itself among them, and
// gives the side on which they differ. That is the one on which the next of
// such rules differs.
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

// behind gives the first rule of a list behind i that is not taken, 0 if there
// is none, and shortens the list to begin with it.
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

// take takes rule i and those of a list from rule at on.
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
