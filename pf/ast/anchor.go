package ast

import "weir/pf/token"

// Anchor makes a rule an anchor: where it stands, the rules of another ruleset
// are judged, if the packet has what the rule asks for. The Action of such a
// rule is Match.
type Anchor struct {
	Name   Word       // the path, as written; empty: the rules in the braces have none
	Braces token.Span // of the braces and all between them; invalid: none
	Body   []Stmt     // what stands in the braces
}

// Again is the anchor at a second place: one with a name stands there by its
// name, without braces. It gives nil for nil.
func (a *Anchor) Again() *Anchor {
	if a == nil || a.Name.Text == "" || !a.Braces.IsValid() {
		return a
	}
	return &Anchor{Name: a.Name}
}

// LoadAnchor sets the rules of an anchor: those of a file or, as such a statement
// is printed once it is read, those in braces.
type LoadAnchor struct {
	token.Span
	Name Word // the path
	File Word // empty: the rules stand in braces
	Body []Stmt
}
