package optimize

import "weir/pf/ast"

// MakeTable makes a table of addresses, and gives the host that names it.
type MakeTable func(hosts []ast.Host) ast.Host

// Rules gives the optimized form of expanded rules that stand in one ruleset.
// It leaves the rules themselves alone.
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

// block is a superblock: neighbours between which it does not matter which of
// them a packet meets.
type block []*rule

// superblock reads the rules of the first superblock, and gives the others.
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

// takes reports whether a rule does the same as those of the block. A group's
// interfaces are not known: a rule for one cannot be told from a rule for an
// interface, so it stands only among rules for the same group.
func (b block) takes(r *rule) bool {
	first := b[0]
	if (group(r.on.name) || group(first.on.name)) && !equalFold(r.on.name, first.on.name) {
		return false
	}
	return r.like == first.like
}
