package ruleset

import "slices"

// A mark says that a table has a prefix as an entry: 2 × the table's number, and
// 1 more where the entry is a "!" one.
type mark uint32

// lists gives numbers to lists of marks, so that a trie's node holds one word.
// Number 0 is the empty list.
type lists struct {
	all    [][]mark
	number map[string]uint32
	key    []byte
}

func newLists() *lists { return &lists{all: [][]mark{nil}, number: map[string]uint32{"": 0}} }

func (l *lists) of(marks []mark) uint32 {
	l.key = l.key[:0]
	for _, m := range marks {
		l.key = append(l.key, byte(m), byte(m>>8), byte(m>>16), byte(m>>24))
	}
	n, ok := l.number[string(l.key)]
	if !ok {
		n = uint32(len(l.all))
		l.number[string(l.key)] = n
		l.all = append(l.all, slices.Clone(marks))
	}
	return n
}

// with returns the list that also has the table's entry, in place of another one
// of that table.
func (l *lists) with(list, table uint32, not bool) uint32 {
	m := mark(2 * table)
	if not {
		m++
	}
	marks := slices.Clone(l.all[list])
	i, found := slices.BinarySearchFunc(marks, table, func(m mark, t uint32) int { return int(m/2) - int(t) })
	if found {
		marks[i] = m
	} else {
		marks = slices.Insert(marks, i, m)
	}
	return l.of(marks)
}

// without returns the list that has no entry of the table.
func (l *lists) without(list, table uint32) uint32 {
	marks := slices.DeleteFunc(slices.Clone(l.all[list]), func(m mark) bool { return uint32(m/2) == table })
	return l.of(marks)
}

// entry returns what a list says of a table; ok is false if it says nothing.
func (l *lists) entry(list, table uint32) (not, ok bool) {
	for _, m := range l.all[list] {
		if uint32(m/2) == table {
			return m&1 != 0, true
		}
	}
	return false, false
}

// sets gives numbers to sets of tables: those that an address is in. Number 0 is
// the empty set. Numbers are never given to another set, since packets hold them.
type sets struct {
	all    [][]uint32 // tables, in order
	number map[string]uint32
	steps  map[[2]uint32]uint32 // set and list → the set inside
	key    []byte
}

func newSets() *sets {
	return &sets{all: [][]uint32{nil}, number: map[string]uint32{"": 0}, steps: map[[2]uint32]uint32{}}
}

// inside returns the set of the addresses under a prefix: what holds around it,
// and where tables have the prefix as an entry what these say.
func (s *sets) inside(l *lists, around, list uint32) uint32 {
	if list == 0 {
		return around
	}
	step := [2]uint32{around, list}
	n, ok := s.steps[step]
	if !ok {
		n = s.of(l.all[list], s.all[around])
		s.steps[step] = n
	}
	return n
}

func (s *sets) of(marks []mark, around []uint32) uint32 {
	tables := slices.Clone(around)
	for _, m := range marks {
		i, found := slices.BinarySearch(tables, uint32(m/2))
		switch in := m&1 == 0; {
		case in && !found:
			tables = slices.Insert(tables, i, uint32(m/2))
		case !in && found:
			tables = slices.Delete(tables, i, i+1)
		}
	}
	s.key = s.key[:0]
	for _, t := range tables {
		s.key = append(s.key, byte(t), byte(t>>8), byte(t>>16), byte(t>>24))
	}
	n, ok := s.number[string(s.key)]
	if !ok {
		n = uint32(len(s.all))
		s.number[string(s.key)] = n
		s.all = append(s.all, tables)
	}
	return n
}
