package optimize

import "weir/pf/ast"

// criteria is the number of pf's skip steps. If a packet fails one criterion, pf skips
// all neighbours that ask the same. They are in pf's order.
const criteria = 9

// skipKey is what a rule asks for in one criterion.
type skipKey struct {
	name string
	not  bool
	n    int
	port port
	addr address
}

// skipKeys returns what a rule asks for in each criterion, or false if it asks nothing or
// pf does not look.
func skipKeys(r *rule) (keys [criteria]skipKey, asks [criteria]bool) {
	keys = [criteria]skipKey{
		{name: r.on.name, not: r.on.not}, {n: int(r.direction)}, {n: int(r.on.domain), not: r.on.not}, {n: int(r.family)}, {n: int(r.proto)},
		{not: r.fromNot}, {not: r.toNot}, {port: r.fromPort}, {port: r.toPort},
	}
	asks = [criteria]bool{
		r.on.name != "", r.direction != 0, r.on.domain != 0, r.family != 0, r.proto != 0,
		false, false, r.fromPort.asked, r.toPort.asked,
	}
	keys[5].addr, asks[5] = skipAddress(&r.ast.From, r.from)
	keys[6].addr, asks[6] = skipAddress(&r.ast.To, r.to)
	return keys, asks
}

// skipAddress returns an address as pfctl compares it here: (if) without modifiers, and
// no zero address, range or route label.
func skipAddress(e *ast.Endpoint, a address) (address, bool) {
	if a.kind == prefix {
		return a, a.addr != [16]byte{}
	}
	h := e.Hosts[0]
	switch h.Kind {
	case ast.HostDynamic:
		return address{kind: other, text: "(" + h.Name + ")", bits: uint8(h.Bits)}, true
	case ast.HostTable, ast.HostNoRoute, ast.HostURPFFailed:
		return a, true
	}
	return a, false
}

// ordered moves rules that ask for the same next to each other: the largest group first,
// then within the group by the next criterion, and so on.
func (b block) ordered() block {
	o := &orderer{
		asks: make([][criteria]int32, len(b)), steps: make([][criteria]*step, len(b)), moved: make([]uint8, len(b)),
	}
	var numbers [criteria]map[skipKey]int32
	for c := range numbers {
		numbers[c] = make(map[skipKey]int32)
	}
	for i, r := range b {
		keys, asks := skipKeys(r)
		for c, k := range keys {
			if !asks[c] {
				continue
			}
			n, ok := numbers[c][k]
			if !ok {
				n = int32(len(numbers[c])) + 1
				numbers[c][k] = n
			}
			o.asks[i][c] = n
		}
	}
	for c := range numbers {
		o.found[c] = make([]*step, len(numbers[c])+1)
	}
	all := make([]int32, len(b))
	for i := range all {
		all[i] = int32(i)
	}
	out := make(block, 0, len(b))
	for _, i := range o.order(all, 1) {
		out = append(out, b[i])
	}
	return out
}

// orderer orders the rules of a block.
type orderer struct {
	asks  [][criteria]int32 // what each rule asks for, as a number; 0: nothing
	found [criteria][]*step // steps by that number; used only while steps are made
	steps [][criteria]*step // the steps that each rule belongs to
	moved []uint8           // the deepest level at which each rule was placed
}

// order returns rules in their new order: first groups of three or more, then pairs, then
// the rest. It calls itself with the next level for rules that share one more criterion,
// so it is at most criteria levels deep.
func (o *orderer) order(rules []int32, level uint8) []int32 {
	var by [criteria]steps
	useful := false
	for c := range by {
		by[c] = o.gather(c, rules)
		useful = by[c].alive() || useful
	}
	if !useful {
		return rules
	}
	out := make([]int32, 0, len(rules))
	var pairs []int32
	for {
		c := largest(&by)
		if c < 0 {
			break
		}
		taken := o.take(&by, c, level)
		if len(taken) > 2 {
			out = append(out, o.order(taken, level+1)...)
		} else {
			pairs = append(pairs, taken...)
		}
	}
	out = append(out, pairs...)
	for _, i := range rules {
		if o.moved[i] < level {
			out = append(out, i)
		}
	}
	return out
}

// largest returns the first criterion with the largest step, or -1 if none joins two
// rules.
func largest(by *[criteria]steps) int {
	top, at := 1, -1
	for c := range by {
		if by[c].top > top {
			top, at = by[c].top, c
		}
	}
	return at
}

// take moves the rules of the largest step of criterion c.
func (o *orderer) take(by *[criteria]steps, c int, level uint8) []int32 {
	var taken []int32
	for _, i := range by[c].take().rules {
		if o.moved[i] >= level {
			continue
		}
		taken = append(taken, i)
	}
	for _, i := range taken {
		o.moved[i] = level
		for k := range by {
			if k != c && o.steps[i][k] != nil {
				by[k].shrink(o.steps[i][k])
			}
		}
	}
	return taken
}
