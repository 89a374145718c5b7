package lint

import (
	"fmt"

	"weir/pf/ast"
	"weir/pf/diag"
)

// unused warns about macros and tables that nothing uses. Tables with persist are for
// others to use.
func unused(stmts []ast.Stmt, list *diag.List) {
	for _, s := range stmts {
		switch s := s.(type) {
		case *ast.Macro:
			if !s.Used {
				warn(list, unusedMacro, diag.Diagnostic{Span: s.Name.Span, Message: fmt.Sprintf("macro %q is never used", s.Name.Text)})
			}
		case *ast.Table:
			if !s.Used && !s.Flags.Persist {
				warn(list, unusedTable, diag.Diagnostic{Span: s.Name.Span, Message: fmt.Sprintf("table <%s> is never used", s.Name.Text)})
			}
		case *ast.LoadAnchor:
			unused(s.Body, list)
		case *ast.Rule:
			if s.Anchor != nil {
				unused(s.Anchor.Body, list)
			}
		}
	}
}
