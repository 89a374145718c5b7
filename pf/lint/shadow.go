package lint

import (
	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/resolve"
	"weir/pf/token"
)

// A side is a direction and a family. A rule without one of them belongs to both sides.
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

// An ender holds the rules so far that end the evaluation for every packet they match.
type ender struct {
	plain     map[side]*index // rules without addresses and ports
	addressed map[side]*index // the others; a match rule that translates may make a packet miss them
}

func newSides() map[side]*index {
	sides := make(map[side]*index)
	for _, s := range allSides {
		sides[s] = newIndex()
	}
	return sides
}

// add adds a rule that ends the evaluation for all its packets.
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

// find returns an earlier rule that takes packets of r, if on each side of r one rule
// takes all of them; otherwise nil.
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

// A maker is what a rule was made from: a statement and one element of its lists.
type maker struct{ stmt, element token.Span }

// A fate is what happens to the rules of a maker.
type fate struct {
	rules, shadowed int
	by              token.Span // the statement of a shadowing rule
}

// shadows warns about rules that no packet reaches, because an earlier rule with quick
// takes all packets that they could match. earlier is the word for such a rule.
func shadows(rules []*resolve.Rule, earlier string, list *diag.List) {
	f := newFates()
	walk(rules, f.add)
	f.warn(list, earlier+" takes all its packets")
}

// fates are what happens to the rules of all makers.
type fates struct {
	of     map[maker]*fate
	makers []maker // in order
}

func newFates() *fates { return &fates{of: map[maker]*fate{}} }

// add adds a rule. If it can never match, by is why.
func (f *fates) add(r, by *resolve.Rule) {
	f.count(maker{stmt: r.Stmt}, by)
	if r.Origin != r.Stmt {
		f.count(maker{r.Stmt, r.Origin}, by)
	}
}

func (f *fates) count(m maker, by *resolve.Rule) {
	one := f.of[m]
	if one == nil {
		one = &fate{}
		f.of[m] = one
		f.makers = append(f.makers, m)
	}
	if one.rules++; by != nil {
		one.shadowed++
		one.by = by.Stmt
	}
}

// warn warns about the statements, and the elements of their lists, of which no rule can match.
func (f *fates) warn(list *diag.List, why string) {
	never := func(m maker) bool { return f.of[m].shadowed == f.of[m].rules }
	for _, m := range f.makers {
		switch whole := (maker{stmt: m.stmt}); {
		case !never(m) || m != whole && never(whole):
		case m == whole:
			shadowed(list, m.stmt, f.of[m].by, "this rule can never match: "+why)
		default:
			shadowed(list, m.element, f.of[m].by, "with this, the rule can never match: "+why)
		}
	}
}

func shadowed(list *diag.List, at, by token.Span, message string) {
	warn(list, "", diag.Diagnostic{Span: at, Message: message, Related: []diag.Related{{Span: by, Note: "this one"}}})
}

// walk visits the rules. see gets each rule and an earlier rule that takes all its
// packets, or nil. walk skips the rules of an anchor that no packet enters.
func walk(rules []*resolve.Rule, see func(r, by *resolve.Rule)) {
	enders := ender{newSides(), newSides()}
	loose := 0 // number of the first rule after anchors whose rules do not carry all of the anchor's conditions
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
