package ruleset

import (
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"weir/pf/resolve"
)

// automatic is the prefix of the names of tables that stand for lists of addresses in
// rules. These never change, so they go into the trees of addresses.
const automatic = "__automatic_"

// isTable reports whether an address is a table whose entries may change.
func isTable(a *resolve.Address) bool {
	return a.Kind == resolve.TableAddress && !strings.HasPrefix(a.Table, automatic)
}

// liveTables holds the tables of a program, and what is needed to make their classes.
type liveTables struct {
	named    *Tables            // tables that conditions of rules use
	idle     *Tables            // all others: they cost packets nothing
	alone    map[string]*Tables // likewise, made at run time
	changed  map[string]bool    // since the program was compiled, or before and kept
	given    map[string]bool    // tables whose definition gives their contents
	fixed    map[string]bool    // tables that nothing may change
	constant map[string]bool    // const tables: commands may not change them
	persist  map[string]bool    // tables that are defined as persistent
	made     map[string]bool    // tables that were made at run time, also if rules name them
	uses     map[string]int     // how many rules name a table
	within   map[string]int     // at how many anchors' rules or tables of the same name it counts
	anchors  map[string]string  // the anchors that define tables, if that is not part of their names
	counted  map[string]bool    // tables with counters
	fields   [2]tableField      // for destination and source
	hash     [16]byte           // of what the file says about all tables

	classesAt, vectorsAt int // everything after them belongs to tables
	vectors              vectorRoom
}

// hashOf returns a hash of what a file says about tables.
func hashOf(tables []*resolve.Table) (sum [16]byte) {
	h := fnv.New128a()
	var b []byte
	for _, t := range tables {
		b = append(append(b[:0], t.Name...), 0)
		for _, flag := range []bool{t.Given, t.Const, t.Persist, t.Counters} {
			b = strconv.AppendBool(b, flag)
		}
		for _, e := range t.Entries {
			if e.Not {
				b = append(b, '!')
			}
			a := e.Prefix.Addr().As16()
			b = append(append(b, a[:]...), byte(e.Prefix.Bits()), byte(e.Prefix.Addr().BitLen()))
		}
		h.Write(b)
	}
	h.Sum(sum[:0])
	return sum
}

// A tableField is one of the two fields of tables.
type tableField struct {
	*classifier
	conditions map[uint32]int // by table
	asked      bool
	at         uint32            // index of the class of set 0
	owns       map[uint32]vector // by set: chunks that can be reused
}

// A vector is the position of chunks in Program.Vectors.
type vector struct{ at, chunks uint32 }

// sortTables separates automatic tables from others, and those that conditions name from
// those that none does. As in pf, a table that rules name exists without a definition, and
// one that no rule names exists only if it is persistent.
func (c *compiler) sortTables(tables []*resolve.Table) {
	asked := c.askedTables()
	t := &c.program.tables
	*t = liveTables{
		alone: map[string]*Tables{}, changed: map[string]bool{}, given: map[string]bool{}, fixed: map[string]bool{}, constant: map[string]bool{}, persist: map[string]bool{},
		made: map[string]bool{}, anchors: map[string]string{}, uses: c.usesOfTables(), within: map[string]int{}, counted: map[string]bool{},
	}
	var named, idle []*resolve.Table
	for name := range asked {
		named = append(named, &resolve.Table{Name: name})
	}
	for _, table := range tables {
		if strings.HasPrefix(table.Name, automatic) {
			c.tables[table.Name] = append(c.tables[table.Name], table.Entries...)
			continue
		}
		t.given[table.Name] = t.given[table.Name] || table.Given
		t.fixed[table.Name] = t.fixed[table.Name] || table.Const
		t.anchors[table.Name] = table.Anchor
		t.constant[table.Name] = t.constant[table.Name] || table.Const
		t.persist[table.Name] = t.persist[table.Name] || table.Persist
		switch {
		case asked[table.Name]:
			named = append(named, table)
		case table.Used || table.Persist:
			idle = append(idle, table)
		default:
			continue
		}
		if table.Counters {
			t.counted[table.Name] = true
		}
	}
	for _, r := range c.rules {
		if name := r.Limits.Overload; name != "" {
			t.fixed[name] = false // as in pf, const does not keep packets from adding to it
			idle = append(idle, &resolve.Table{Name: name})
		}
	}
	for name := range c.limiterTables() {
		t.fixed[name] = false // likewise
		idle = append(idle, &resolve.Table{Name: name})
	}
	for name, in := range c.anchorsOfTables() {
		if _, defined := t.given[name]; !defined && len(in) == 1 {
			t.anchors[name] = slices.Collect(maps.Keys(in))[0]
		}
	}
	idle = slices.DeleteFunc(idle, func(table *resolve.Table) bool { return asked[table.Name] })
	t.named, t.idle = NewTables(named), NewTables(idle)
	c.countAnchors(slices.Concat(named, idle))
}

// countAnchors counts the anchors that name or define a table. As in pf, those that define one of
// their own count at the table of that name outside of anchors; at one of an anchor none does.
func (c *compiler) countAnchors(all []*resolve.Table) {
	t, within := &c.program.tables, map[string]map[string]bool{}
	named := c.anchorsOfTables()
	for _, table := range all {
		name, own, _ := strings.Cut(table.Name, "@")
		if within[name] == nil {
			within[name] = map[string]bool{}
		}
		maps.Copy(within[name], named[table.Name])
		within[name][own] = true
	}
	for name, in := range within {
		delete(in, "")
		if t.anchors[name] == "" {
			t.within[name] = len(in)
		}
	}
}

// askedTables returns the tables that conditions of rules name.
func (c *compiler) askedTables() map[string]bool {
	asked := map[string]bool{}
	for _, r := range c.rules {
		for _, a := range []*resolve.Address{&r.From.Addr, &r.To.Addr} {
			if isTable(a) {
				asked[a.Table] = true
			}
		}
	}
	return asked
}

// limiterTables returns how many source limiters name each table.
func (c *compiler) limiterTables() map[string]int {
	named := map[string]int{}
	for i := range c.program.Limiters {
		if name := c.program.Limiters[i].Table; name != "" {
			named[name]++
		}
	}
	return named
}

// usesOfTables returns how many rules and limiters name each table.
func (c *compiler) usesOfTables() map[string]int {
	uses := c.limiterTables()
	for _, r := range c.rules {
		for _, a := range []*resolve.Address{&r.From.Addr, &r.To.Addr} {
			if isTable(a) {
				uses[a.Table]++
			}
		}
		if name := r.Limits.Overload; name != "" {
			uses[name]++
		}
	}
	return uses
}

// anchorsOfTables returns the anchors whose rules name each table; "" is the main ruleset.
func (c *compiler) anchorsOfTables() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	note := func(name, anchor string) {
		if all[name] == nil {
			all[name] = map[string]bool{}
		}
		all[name][anchor] = true
	}
	for _, r := range c.rules {
		for _, a := range []*resolve.Address{&r.From.Addr, &r.To.Addr} {
			if isTable(a) {
				note(a.Table, r.Scope)
			}
		}
		if name := r.Limits.Overload; name != "" {
			note(name, r.Scope)
		}
	}
	return all
}

// tableFields makes the classes of both fields of tables, one for each set, and the index
// of the tables.
func (c *compiler) tableFields() error {
	p := c.program
	t := &p.tables
	for i, side := range []func(*resolve.Rule) *resolve.Endpoint{
		func(r *resolve.Rule) *resolve.Endpoint { return &r.To },
		func(r *resolve.Rule) *resolve.Endpoint { return &r.From },
	} {
		asked := collect(c.rules, func(r *resolve.Rule) question[string] {
			a := &side(r).Addr
			return question[string]{asked: isTable(a), contrary: a.Not, key: a.Table}
		}, func(string) [2][]span { return [2][]span{} })
		f := &t.fields[i]
		*f = tableField{classifier: newClassifier(p, asked), conditions: map[uint32]int{}, asked: len(asked.conditions) > 0}
		for k, condition := range asked.conditions {
			if n, ok := t.named.number(side(c.rules[condition.rules[0]]).Addr.Table); ok {
				f.conditions[n] = k
			}
		}
		if f.asked {
			p.Set.AsksTables |= []uint8{asksDst, asksSrc}[i]
		}
	}
	t.classesAt, t.vectorsAt = len(p.Classes), len(p.Vectors)
	if err := p.makeTables(); err != nil {
		return &Error{Rule: c.largestTableRule(), What: "with the table that it names, " + err.Error()}
	}
	return nil
}

// largestTableRule returns the first rule that names the table with the most entries.
func (c *compiler) largestTableRule() int {
	rule, most := 0, -1
	for i, r := range c.rules {
		for _, a := range []*resolve.Address{&r.From.Addr, &r.To.Addr} {
			if !isTable(a) {
				continue
			}
			if n, err := c.program.tables.named.Len(a.Table); err == nil && n > most {
				rule, most = i, n
			}
		}
	}
	return rule
}
