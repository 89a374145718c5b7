package ruleset

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"weir/pf/resolve"
)

// TableNumber returns the number under which the entries of a table with counters count.
// It is made from the table's name, so it means the same after a load.
func TableNumber(name string) uint32 {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return hash.Sum32()>>2 | 1
}

// CountedTables returns the names of the tables with counters.
func (p *Program) CountedTables() []string { return slices.Sorted(maps.Keys(p.tables.counted)) }

// Counted reports whether the entries of a table have counters.
func (p *Program) Counted(name string) bool { return p.tables.counted[name] }

// TableLen returns how many entries a table has; 0 if there is no such table.
func (p *Program) TableLen(name string) int {
	in, err := p.tables.find(name)
	if err != nil {
		return 0
	}
	n, _ := in.Len(name) // it is there
	return n
}

// counts returns what an address of a rule says about counting.
func (c *compiler) counts(a *resolve.Address) TableCount {
	if !isTable(a) || !c.program.tables.counted[a.Table] {
		return 0
	}
	n := TableCount(TableNumber(a.Table) << 1)
	if a.Not {
		n |= 1
	}
	return n
}

// tellTablesApart refuses tables with counters whose numbers are the same.
func (t *liveTables) tellTablesApart() error {
	names := make(map[uint32]string, len(t.counted))
	for _, name := range slices.Sorted(maps.Keys(t.counted)) {
		number := TableNumber(name)
		if other := names[number]; other != "" {
			return fmt.Errorf("the counters of tables <%s> and <%s> cannot be told apart: give one another name", other, name)
		}
		names[number] = name
	}
	return nil
}
