package printer

import (
	"strings"

	"weir/pf/ast"
)

// dummynetDef prints the configuration of a pipe, a queue or a scheduler of dummynet.
func dummynetDef(d *ast.DummynetDef) string {
	return (append(clauses{d.Kind.Text, d.Number.Text, "config"}, d.Words...)).String()
}

// dummynetRule prints macOS's rule. It is written as a match rule but for its first and last words.
func dummynetRule(d *ast.PacketPipe) string {
	c := clauses{pick(d.No, "no dummynet", "dummynet") + strings.TrimPrefix(Rule(&d.Rule), "match")}
	if d.No {
		return c.String()
	}
	c.add(pick(d.Queue, "queue", "pipe"), d.Number.Text)
	return c.String()
}
