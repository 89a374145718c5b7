package printer

import (
	"weir/pf/ast"
)

// table prints a table. Like pfctl, it joins neighbouring lists into one.
func table(t *ast.Table) string {
	c := clauses{"table", "<" + word(t.Name.Text) + ">"}
	c.addIf(t.Flags.Const, "const")
	c.addIf(t.Flags.Persist, "persist")
	c.addIf(t.Flags.Counters, "counters")
	listed := false // a list is open
	for i := range t.Sources {
		s := &t.Sources[i]
		if s.File != nil {
			c.addIf(listed, "}")
			c.add("file", quote(s.File.Text))
			listed = false
			continue
		}
		c.addIf(!listed, "{")
		listed = true
		for j := range s.Hosts {
			c.add(tableHost(&s.Hosts[j]))
		}
	}
	c.addIf(listed, "}")
	return c.String()
}

func tableHost(h *ast.Host) string {
	if h.Not {
		return "!" + address(h)
	}
	return address(h)
}
