package printer

import "weir/pf/ast"

// names prints the names of a rule: labels, and the number that FreeBSD and pfSense give
// it.
func names(c *clauses, first *ast.Word, more []ast.Word, identifier *ast.Word) {
	if first != nil {
		c.add("label", quote(first.Text))
	}
	for _, l := range more {
		c.add("label", quote(l.Text))
	}
	if identifier != nil {
		c.add("ridentifier", identifier.Text)
	}
}

func dummynet(c *clauses, d *ast.Dummynet) {
	if d == nil {
		return
	}
	c.add(pick(d.Queue, "dnqueue", "dnpipe"))
	if len(d.Numbers) == 1 {
		c.add(d.Numbers[0].Text)
		return
	}
	c.add("(" + d.Numbers[0].Text + ", " + d.Numbers[1].Text + ")")
}
