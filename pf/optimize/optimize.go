package optimize

import "weir/pf/ast"

// MakeTable makes a table of addresses and returns the host that names it.
type MakeTable func(hosts []ast.Host) ast.Host

// Rules returns the optimized form of the expanded rules of one ruleset. It does not
// change the rules.
func Rules(rules []*ast.Rule, table MakeTable) []*ast.Rule {
	if len(rules) < 2 {
		return rules // there is nothing to compare
	}
	r := newReader()
	out := make([]*ast.Rule, 0, len(rules))
	for len(rules) > 0 {
		var b block
		b, rules = r.superblock(rules)
		if len(b) > 1 {
			b = b.withoutCovered()
			b = b.combined(table)
			b = b.ordered()
		}
		for _, rule := range b {
			out = append(out, rule.ast)
		}
	}
	return out
}

// block is a superblock: neighbours of which a packet may match any, with the same
// result.
type block []*rule

// superblock reads the rules of the first superblock and returns the others.
func (r *reader) superblock(rules []*ast.Rule) (block, []*ast.Rule) {
	if r.barrier(rules[0]) {
		return block{{ast: rules[0]}}, rules[1:]
	}
	b := block{r.read(rules[0], len(rules))}
	for i, next := range rules[1:] {
		if r.barrier(next) {
			return b, rules[i+1:]
		}
		rule := r.read(next, len(rules)-1-i)
		if !b.takes(rule) {
			return b, rules[i+1:]
		}
		b = append(b, rule)
	}
	return b, nil
}

// takes reports whether a rule does the same as the rules of the block. The interfaces of
// a group are unknown, so a rule for a group stands only among rules for the same group.
func (b block) takes(r *rule) bool {
	first := b[0]
	if (group(r.on.name) || group(first.on.name)) && !equalFold(r.on.name, first.on.name) {
		return false
	}
	return r.like == first.like
}
