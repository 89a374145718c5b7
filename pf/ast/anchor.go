package ast

import (
	"weir/pf/source"
	"weir/pf/token"
)

// Anchor makes a rule an anchor: the rules of another ruleset are evaluated there if the
// packet matches the rule. The Action of such a rule is Match.
type Anchor struct {
	Name   Word       // path as written; empty: the rules in the braces have no name
	Braces token.Span // braces and everything between them; invalid: none
	Body   []Stmt     // statements in the braces
}

// Again returns the anchor for a second place. If it has a name, the copy has only that,
// without braces. It returns nil for nil.
func (a *Anchor) Again() *Anchor {
	if a == nil || a.Name.Text == "" || !a.Braces.IsValid() {
		return a
	}
	return &Anchor{Name: a.Name}
}

// LoadAnchor sets the rules of an anchor: those of a file or, once it is read, those in
// braces.
type LoadAnchor struct {
	token.Span
	Name Word // the path
	File Word // empty: the rules are in braces
	Body []Stmt

	// AtRunTime says that the rules were loaded at run time. They replace those that the
	// configuration has for the anchor.
	AtRunTime bool
	Flushed   []source.Kind // of such rules: they are not in force
	Elsewhere bool          // it has no rules itself: Flushed says what other rules for the path lose
}
