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
	froms   map[sameKey][]int32 // rules that differ in their sources, in order
	tos     map[sameKey][]int32 // in their destinations
	taken   []bool              // by a table, even if it is too small
	removed []bool
	gone    bool // something is
}

// sameKey is what rules that become one have in common: all but one address.
type sameKey struct {
	question question
	address  address
}

func newCombiner(b block) *combiner {
	c := &combiner{
		block: b,
		froms: make(map[sameKey][]int32), tos: make(map[sameKey][]int32),
		taken: make([]bool, len(b)), removed: make([]bool, len(b)),
	}
	for i, r := range b {
		if r.from.listable() {
			k := sameKey{r.question, r.to}
			c.froms[k] = append(c.froms[k], int32(i))
		}
		if r.to.listable() {
			k := sameKey{r.question, r.from}
			c.tos[k] = append(c.tos[k], int32(i))
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
	from, to := sameKey{r.question, r.to}, sameKey{r.question, r.from}
	var bySource, byDestination []int32
	if r.from.listable() {
		bySource = c.left(c.froms, from, i)
	}
	if r.to.listable() {
		byDestination = c.left(c.tos, to, i)
	}
	switch {
	case len(bySource) == 0 && len(byDestination) == 0:
		return nil, nil
	case len(byDestination) == 0 || len(bySource) > 0 && bySource[0] < byDestination[0]:
		return c.take(c.froms, from, i, bySource), source
	}
	return c.take(c.tos, to, i, byDestination), destination
}

// left gives the rules of a list behind i, from the first that is not taken on,
// and shortens the list to them.
func (c *combiner) left(lists map[sameKey][]int32, k sameKey, i int32) []int32 {
	list := lists[k]
	for len(list) > 0 && (list[0] <= i || c.taken[list[0]]) {
		list = list[1:]
	}
	lists[k] = list
	return list
}

func (c *combiner) take(lists map[sameKey][]int32, k sameKey, i int32, list []int32) []int32 {
	members := []int32{i}
	for _, m := range list {
		if !c.taken[m] {
			c.taken[m] = true
			members = append(members, m)
		}
	}
	delete(lists, k)
	return members
}
