package ruleset

import (
	"maps"
	"slices"
)

// A mark says that a table has a prefix as an entry. It is 2 × the table's number, plus 1
// for a "!" entry.
type mark uint32

// lists numbers lists of marks, so that a trie's node needs only one word. Number 0 is
// the empty list.
type lists struct {
	all    [][]mark
	number map[string]uint32
	steps  map[listStep]uint32
	key    []byte
}

// A listStep is a change of a list.
type listStep struct {
	list, table uint32
	not, gone   bool
}

func newLists() *lists {
	return &lists{all: [][]mark{nil}, number: map[string]uint32{"": 0}, steps: map[listStep]uint32{}}
}

// change returns the list after a table's entry was replaced or removed.
func (l *lists) change(list, table uint32, not, gone bool) uint32 {
	step := listStep{list, table, not, gone}
	n, ok := l.steps[step]
	if !ok {
		if gone {
			n = l.without(list, table)
		} else {
			n = l.with(list, table, not)
		}
		l.steps[step] = n
	}
	return n
}

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

// with returns the list with the table's entry added. It replaces another entry of that
// table.
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

// without returns the list without the table's entry.
func (l *lists) without(list, table uint32) uint32 {
	marks := slices.DeleteFunc(slices.Clone(l.all[list]), func(m mark) bool { return uint32(m/2) == table })
	return l.of(marks)
}

// entry returns a table's entry in a list. ok is false if it has none.
func (l *lists) entry(list, table uint32) (not, ok bool) {
	for _, m := range l.all[list] {
		if uint32(m/2) == table {
			return m&1 != 0, true
		}
	}
	return false, false
}

// sets numbers the sets of tables that addresses are in. Number 0 is the empty set. A
// number is reused only after release, when no packet can hold it any more.
type sets struct {
	all    [][]uint32 // tables of each set, in order
	number map[string]uint32
	steps  map[[2]uint32]uint32 // set and list → the set of addresses inside
	used   []bool               // by the latest index
	free   []uint32
	fresh  []uint32 // numbers assigned since the last take
	key    []byte
}

func newSets() *sets {
	return &sets{all: [][]uint32{nil}, number: map[string]uint32{"": 0}, steps: map[[2]uint32]uint32{}, used: []bool{true}}
}

// inside returns the set of the addresses under a prefix. It is the set around the
// prefix, changed by the tables that have the prefix as an entry.
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
	n, ok := s.number[s.keyOf(tables)]
	if !ok {
		n = s.assign(tables)
	}
	return n
}

func (s *sets) keyOf(tables []uint32) string {
	s.key = s.key[:0]
	for _, t := range tables {
		s.key = append(s.key, byte(t), byte(t>>8), byte(t>>16), byte(t>>24))
	}
	return string(s.key)
}

// assign returns an unused number for a set.
func (s *sets) assign(tables []uint32) uint32 {
	n := uint32(len(s.all))
	if last := len(s.free) - 1; last >= 0 {
		n, s.free = s.free[last], s.free[:last]
		s.all[n] = tables
	} else {
		s.all = append(s.all, tables)
		s.used = append(s.used, false)
	}
	s.number[s.keyOf(tables)] = n
	s.fresh = append(s.fresh, n)
	return n
}

// take returns the numbers that were assigned since the last take.
func (s *sets) take() []uint32 {
	fresh := s.fresh
	s.fresh = nil
	return fresh
}

// unmark is called before an index is made. use is then called for each set in it.
func (s *sets) unmark()      { clear(s.used[1:]) }
func (s *sets) use(n uint32) { s.used[n] = true }

// release frees the numbers that the latest index does not use, and returns them.
func (s *sets) release() []uint32 {
	var freed []uint32
	for n, used := range s.used {
		if !used && s.all[n] != nil {
			freed = append(freed, uint32(n))
		}
	}
	s.forget(freed)
	return freed
}

// forgetFresh frees the numbers assigned since the last take that the latest index does
// not use. No packet has seen them.
func (s *sets) forgetFresh() {
	s.forget(slices.DeleteFunc(slices.Clone(s.fresh), func(n uint32) bool { return s.used[n] }))
}

// forget frees numbers that no packet holds.
func (s *sets) forget(numbers []uint32) {
	if len(numbers) == 0 {
		return
	}
	gone := make(map[uint32]bool, len(numbers))
	for _, n := range numbers {
		gone[n] = true
		delete(s.number, s.keyOf(s.all[n]))
		s.all[n] = nil
	}
	maps.DeleteFunc(s.steps, func(step [2]uint32, to uint32) bool { return gone[step[0]] || gone[to] })
	s.fresh = slices.DeleteFunc(s.fresh, func(n uint32) bool { return gone[n] })
	s.free = append(s.free, numbers...)
}
