package resolve

import (
	"slices"

	"weir/pf/ast"
	"weir/pf/token"
)

// hoist moves the tables of anchors in braces to the main ruleset, because pfctl prints
// them before the rules, as it meets them. Tables stay if they would mean something else
// there: their name is used or defined elsewhere too.
func (r *resolver) hoist() {
	defined := make(map[string]int, len(r.defined))
	for _, t := range r.defined {
		defined[t.Name.Text]++
	}
	elsewhere := make(map[string]*scope, len(r.uses)) // where a name is used; main if in several places
	for _, use := range r.uses {
		if first, ok := elsewhere[use.Name]; ok && first != use.in {
			elsewhere[use.Name] = r.main
		} else {
			elsewhere[use.Name] = use.in
		}
	}
	var tables []*ast.Table
	for anchor, s := range r.bodies {
		kept := slices.DeleteFunc(anchor.Body, func(stmt ast.Stmt) bool {
			t, ok := stmt.(*ast.Table)
			if !ok || defined[t.Name.Text] > 1 || r.host.Tables[t.Name.Text] != nil {
				return false
			}
			if in, used := elsewhere[t.Name.Text]; used && in != s {
				return false
			}
			tables = append(tables, t)
			t.Anchor = s.path
			delete(s.tables, t.Name.Text)
			r.main.tables[t.Name.Text] = t
			return true
		})
		s.out.Stmts = slices.DeleteFunc(s.out.Stmts, func(stmt ast.Stmt) bool { return moved(stmt, r.main) })
		if anchor.Body = kept; len(kept) == 0 && anchor.Name.Text != "" {
			anchor.Braces = token.Span{} // pfctl prints an anchor without rules like this
		}
	}
	r.out.Stmts = merged(r.out.Stmts, tables)
}

// moved reports whether a statement is a table of the main ruleset.
func moved(s ast.Stmt, main *scope) bool {
	t, ok := s.(*ast.Table)
	return ok && main.tables[t.Name.Text] == t
}

// merged puts tables among statements that are not rules, in the order of the file.
func merged(stmts []ast.Stmt, tables []*ast.Table) []ast.Stmt {
	if len(tables) == 0 {
		return stmts
	}
	slices.SortFunc(tables, func(a, b *ast.Table) int { return int(a.Pos) - int(b.Pos) })
	out := make([]ast.Stmt, 0, len(stmts)+len(tables))
	for _, s := range stmts {
		for len(tables) > 0 && tables[0].Pos < s.Whole().Pos {
			out, tables = append(out, tables[0]), tables[1:]
		}
		out = append(out, s)
	}
	for _, t := range tables {
		out = append(out, t)
	}
	return out
}
