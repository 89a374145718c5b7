package printer

import (
	"fmt"

	"weir/pf/ast"
)

// Scrub returns the text of a scrub rule of FreeBSD's.
func Scrub(s *ast.ScrubRule) string {
	var c clauses
	if s.Ruleset != nil {
		c.add("scrub-anchor", quote(s.Ruleset.Text), "all")
		return c.String()
	}
	c.addIf(s.No, "no")
	c.add("scrub", direction(s.Direction))
	logs(&c, s.Log)
	c.addIf(len(s.On) > 0, "on", list(s.On, onInterface))
	c.add(s.Family.String())
	c.addIf(len(s.Protos) > 0, "proto", list(s.Protos, func(p *ast.Proto) string { return name(p.Text) }))
	fromTo(&c, &s.Rule)
	if s.Tagged != nil {
		c.addIf(s.Tagged.Not, "!")
		c.add("tagged", name(s.Tagged.Name.Text))
	}
	if s.RTable != nil {
		c.add(fmt.Sprintf("rtable %d", s.RTable.N))
	}
	c.addIf(s.NoDF, "no-df")
	c.addIf(s.RandomID, "random-id")
	for _, o := range []struct {
		name  string
		value *ast.Word
	}{{"min-ttl", s.MinTTL}, {"max-mss", s.MaxMSS}} {
		if o.value != nil {
			c.add(o.name, name(o.value.Text))
		}
	}
	if s.SetTOS != nil {
		c.add("set-tos", tos(s.SetTOS))
	}
	c.addIf(s.ReassembleTCP, "reassemble tcp")
	c.addIf(s.Fragment != "", "fragment", s.Fragment)
	return c.String()
}
