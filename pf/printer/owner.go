package printer

import "weir/pf/ast"

// owners prints the conditions of a user or group clause. keyword says which.
func owners(c *clauses, keyword string, conditions []ast.Owner) {
	c.addIf(len(conditions) > 0, keyword, list(conditions, func(o *ast.Owner) string {
		return compared(o.Op, o.Low.Text, o.High.Text)
	}))
}
