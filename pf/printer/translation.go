package printer

import (
	"fmt"

	"weir/pf/ast"
)

// Translation prints a translation rule of FreeBSD's without a line end.
func Translation(t *ast.Translation) string {
	var c clauses
	if t.Ruleset != nil {
		c.add(t.Kind.String()+"-anchor", quote(t.Ruleset.Text))
	} else {
		c.addIf(t.No, "no")
		c.add(t.Kind.String())
		c.addIf(t.Pass, "pass")
	}
	logs(&c, t.Log)
	c.addIf(len(t.On) > 0, "on", list(t.On, onInterface))
	c.add(t.Family.String())
	c.addIf(len(t.Protos) > 0, "proto", list(t.Protos, func(p *ast.Proto) string { return name(p.Text) }))
	fromTo(&c, &t.Rule)
	if t.Tag != nil {
		c.add("tag", name(t.Tag.Text))
	}
	if t.Tagged != nil {
		c.addIf(t.Tagged.Not, "!")
		c.add("tagged", name(t.Tagged.Name.Text))
	}
	if t.RTable != nil {
		c.add(fmt.Sprintf("rtable %d", t.RTable.N))
	}
	pool(&c, "->", t.Target)
	return c.String()
}
