package printer

import (
	"fmt"

	"weir/pf/ast"
)

// limiterDef prints the definition of a limiter.
func limiterDef(l *ast.LimiterDef) string {
	c := clauses{pick(l.Source, "source", "state"), "limiter", name(l.Name.Text)}
	number(&c, "id", uint64(l.ID), true)
	number(&c, "entries", uint64(l.Entries), l.Entries > 0)
	number(&c, "limit", uint64(l.Limit), true)
	if l.Rate > 0 {
		c.add("rate", fmt.Sprintf("%d/%d", l.Rate, l.Seconds))
	}
	if l.Inet != nil {
		number(&c, "inet mask", uint64(*l.Inet), true)
	}
	if l.Inet6 != nil {
		number(&c, "inet6 mask", uint64(*l.Inet6), true)
	}
	if l.Table != nil {
		c.add("table", "<"+word(l.Table.Text)+">")
		number(&c, "above", uint64(l.Above), true)
		number(&c, "below", uint64(l.Below), l.Below > 0)
	}
	return c.String()
}
