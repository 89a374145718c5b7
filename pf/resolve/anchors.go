package resolve

import (
	"strings"

	"weir/pf/ast"
	"weir/pf/printer"
)

// Anchor describes the rules of one anchor.
type Anchor struct {
	Path      string   // from the main ruleset
	AtRunTime bool     // its rules were loaded at run time, or stand in braces in such rules
	Given     bool     // the configuration itself has rules for this path
	Tables    []string // definitions of its persistent tables, without contents
	Rules     int      // how many, without those of anchors in it
	Lines     []string // its rules, as weir check prints them
}

// allAnchors returns the anchors that have a ruleset of their own.
func (r *resolver) allAnchors() []Anchor {
	all := make([]Anchor, 0, len(r.anchors))
	for _, path := range sortedKeys(r.anchors) {
		s := r.anchors[path]
		a := Anchor{Path: path, AtRunTime: r.replaced[path], Given: r.given[path], Lines: linesOf(s.stmts(), false)}
		a.Tables = persistent(s)
		a.Rules = len(s.rules) + len(s.translations) + len(s.scrubs) + len(s.ethers)
		all = append(all, a)
	}
	return all
}

// linesOf prints statements, with or without tables.
func linesOf(stmts []ast.Stmt, tables bool) []string {
	rules := &ast.File{}
	for _, s := range stmts {
		if _, is := s.(*ast.Table); !is || tables {
			rules.Stmts = append(rules.Stmts, s)
		}
	}
	var text strings.Builder
	if err := printer.Fprint(&text, rules); err != nil || text.Len() == 0 { // a Builder takes all
		return nil
	}
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// persistent returns the definitions of the tables of a scope that stay if its rules go.
func persistent(s *scope) (lines []string) {
	for _, stmt := range s.out.Stmts {
		t, is := stmt.(*ast.Table)
		if !is || !t.Flags.Persist || t.Flags.Const {
			continue
		}
		bare := ast.Table{Name: t.Name, Flags: t.Flags}
		lines = append(lines, linesOf([]ast.Stmt{&bare}, true)...)
	}
	return lines
}
