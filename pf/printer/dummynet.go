package printer

import "weir/pf/ast"

// dummynetDef prints the configuration of a pipe, a queue or a scheduler of dummynet.
func dummynetDef(d *ast.DummynetDef) string {
	return (append(clauses{d.Kind.Text, d.Number.Text, "config"}, d.Words...)).String()
}
