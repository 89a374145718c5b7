package ruleset

import (
	"strings"

	"weir/pf/resolve"
)

// automatic begins the names of tables that stand for lists of addresses in
// rules. They never change, so they go into the trees of addresses.
const automatic = "__automatic_"

// isTable reports whether an address is a table whose entries may change.
func isTable(a *resolve.Address) bool {
	return a.Kind == resolve.TableAddress && !strings.HasPrefix(a.Table, automatic)
}

// sortTables tells automatic tables and those that rules name apart. Tables that
// no rule names cost nothing.
func (c *compiler) sortTables(tables []*resolve.Table) {
	asked := map[string]bool{}
	for _, r := range c.rules {
		for _, a := range []*resolve.Address{&r.From.Addr, &r.To.Addr} {
			if isTable(a) {
				asked[a.Table] = true
			}
		}
	}
	var named []*resolve.Table
	for _, t := range tables {
		switch {
		case strings.HasPrefix(t.Name, automatic):
			c.tables[t.Name] = append(c.tables[t.Name], t.Entries...)
		case asked[t.Name]:
			named = append(named, t)
		}
	}
	c.named = NewTables(named)
}

// tableFields makes the classes of both fields of tables, one for each set, and
// their trees.
func (c *compiler) tableFields() error {
	p := c.program
	index, err := c.named.Index()
	if err != nil {
		return &Error{Rule: c.asksLargestTable(), What: "with the table that it names, " + err.Error()}
	}
	p.appendTables(index)
	for _, f := range []struct {
		side func(*resolve.Rule) *resolve.Endpoint
		at   *uint32
		asks uint8
	}{
		{func(r *resolve.Rule) *resolve.Endpoint { return &r.To }, &p.Set.DstTablesAt, 1},
		{func(r *resolve.Rule) *resolve.Endpoint { return &r.From }, &p.Set.SrcTablesAt, 2},
	} {
		numbers := map[uint32]int{} // conditions by table
		conditions := collect(c.rules, func(r *resolve.Rule) question[string] {
			a := &f.side(r).Addr
			return question[string]{asked: isTable(a), contrary: a.Not, key: a.Table}
		}, func(string) [2][]span { return [2][]span{} })
		for i, condition := range conditions.conditions {
			p.Set.AsksTables |= f.asks
			if n, ok := c.named.number(f.side(c.rules[condition.rules[0]]).Addr.Table); ok {
				numbers[n] = i
			}
		}
		if err := c.tableClasses(newClassifier(p, conditions), numbers, f.at); err != nil {
			return err
		}
	}
	return nil
}

// asksLargestTable returns the first rule that names the table with the most entries.
func (c *compiler) asksLargestTable() int {
	rule, most := 0, -1
	for i, r := range c.rules {
		for _, a := range []*resolve.Address{&r.From.Addr, &r.To.Addr} {
			if !isTable(a) {
				continue
			}
			if n, err := c.named.Len(a.Table); err == nil && n > most {
				rule, most = i, n
			}
		}
	}
	return rule
}

// tableClasses makes one class for each set, in their order.
func (c *compiler) tableClasses(classes *classifier, numbers map[uint32]int, at *uint32) error {
	p := c.program
	var found []Class
	for _, set := range c.named.sets.all {
		classes.reset()
		for _, table := range set {
			if i, ok := numbers[table]; ok {
				classes.toggle(i)
			}
		}
		class, err := classes.class()
		if err != nil {
			return err
		}
		found = append(found, p.Classes[class])
	}
	if *at = uint32(len(p.Classes)); len(p.Classes)+len(found) > maxClasses {
		return classes.tooMany()
	}
	p.Classes = append(p.Classes, found...)
	return nil
}
