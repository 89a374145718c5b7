package lint

import (
	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/resolve"
	"weir/pf/token"
)

// A side is a direction and a family: what a rule asks for without either, it
// asks for on all sides.
type side struct {
	direction ast.Direction
	family    ast.Family
}

var allSides = []side{
	{ast.In, ast.Inet}, {ast.In, ast.Inet6}, {ast.Out, ast.Inet}, {ast.Out, ast.Inet6},
}

func (s side) of(r *resolve.Rule) bool {
	return (r.Direction == ast.AnyDirection || r.Direction == s.direction) && (r.Family == ast.AnyFamily || r.Family == s.family)
}

// An ender is all rules so far behind which nothing is judged of the packets
// that they match.
type ender struct {
	plain     map[side]*index // those that ask nothing of addresses and ports
	addressed map[side]*index // what a match rule translates may have been missed by these
}

func newSides() map[side]*index {
	sides := make(map[side]*index)
	for _, s := range allSides {
		sides[s] = newIndex()
	}
	return sides
}

// add enters a rule that takes all that it matches.
func (e *ender) add(r *resolve.Rule) {
	in := e.plain
	if r.From != (resolve.Endpoint{}) || r.To != (resolve.Endpoint{}) {
		in = e.addressed
	}
	for _, s := range allSides {
		if s.of(r) {
			in[s].add(r)
		}
	}
}

// find gives a rule that takes packets of r before it, if on each of its sides
// one takes all; else nil.
func (e *ender) find(r *resolve.Rule) (by *resolve.Rule) {
	for _, s := range allSides {
		if !s.of(r) {
			continue
		}
		if by = e.plain[s].find(r); by == nil {
			by = e.addressed[s].find(r)
		}
		if by == nil {
			return nil
		}
	}
	return by
}

// A maker is where in the file a rule comes from: a statement, and the element
// of its lists.
type maker struct{ stmt, element token.Span }

// A fate is what becomes of the rules of a maker.
type fate struct {
	rules, shadowed int
	by              token.Span // the statement of a rule that shadows one
}

// shadows warns of rules that no packet reaches: an earlier rule with quick, which
// is called earlier, takes all that they could match.
func shadows(rules []*resolve.Rule, earlier string, list *diag.List) {
	fates := map[maker]*fate{}
	var makers []maker // in order
	count := func(m maker, by *resolve.Rule) {
		f := fates[m]
		if f == nil {
			f = &fate{}
			fates[m] = f
			makers = append(makers, m)
		}
		if f.rules++; by != nil {
			f.shadowed++
			f.by = by.Stmt
		}
	}
	walk(rules, func(r, by *resolve.Rule) {
		count(maker{stmt: r.Stmt}, by)
		if r.Origin != r.Stmt {
			count(maker{r.Stmt, r.Origin}, by)
		}
	})
	never := func(m maker) bool { return fates[m].shadowed == fates[m].rules }
	for _, m := range makers {
		switch whole := (maker{stmt: m.stmt}); {
		case !never(m) || m != whole && never(whole):
		case m == whole:
			shadowed(list, m.stmt, fates[m].by, "this rule can never match: "+earlier+" takes all its packets")
		default:
			shadowed(list, m.element, fates[m].by, "with this, the rule can never match: "+earlier+" takes all its packets")
		}
	}
}

func shadowed(list *diag.List, at, by token.Span, message string) {
	warn(list, "", diag.Diagnostic{Span: at, Message: message, Related: []diag.Related{{Span: by, Note: "this one"}}})
}

// walk goes through the rules with, for each, the one that takes all its packets
// before it, or nil. It passes over the rules of an anchor that no packet enters.
func walk(rules []*resolve.Rule, see func(r, by *resolve.Rule)) {
	enders := ender{newSides(), newSides()}
	loose := 0 // number of the first rule behind the anchors whose rules do not ask for all that they do
	for i := 0; i < len(rules); i++ {
		r := rules[i]
		by := enders.find(r)
		see(r, by)
		switch {
		case r.Anchor != nil && by != nil:
			i = r.Anchor.End - 1
		case r.Anchor != nil && !r.Anchor.Flat:
			loose = max(loose, r.Anchor.End)
		case r.Action == ast.Match && (r.Nat != nil || r.Rdr != nil):
			enders.addressed = newSides()
		}
		if i >= loose && by == nil && takesAll(r) {
			enders.add(r)
		}
	}
}
