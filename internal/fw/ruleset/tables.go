package ruleset

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"weir/pf/resolve"
)

// maxSets is the most sets of tables at a time.
const maxSets = 1 << 16

// ErrTablesFull is returned (wrapped) if entries do not fit.
var ErrTablesFull = errors.New("the tables' entries do not fit")

// ErrNoTable is returned (wrapped) for a table that does not exist.
var ErrNoTable = errors.New("there is no such table")

// ErrConstTable is returned (wrapped) for a change of a const table.
var ErrConstTable = errors.New("the table is const")

// A TableEntry is an element of a table: a prefix or, with Not, an exception to a shorter
// one.
type TableEntry = resolve.TableEntry

// Tables holds the contents of tables. An address is looked up once, whatever the number
// of tables. The result is the set of the tables that contain it. Tables are not safe for
// concurrent use.
type Tables struct {
	names    []string // sorted; a table's number is its index here
	entries  []int    // number of entries, by table
	families [2]*trie // for IPv4 and IPv6
	lists    *lists
	sets     *sets
	changes  [2][]uint32 // nodes whose prefixes have changed since the last index
	behind   bool        // other prefixes have changed too, and are not listed there
}

// NewTables returns tables with their contents. If several entries have the same prefix,
// the first counts.
func NewTables(tables []*resolve.Table) *Tables {
	t := &Tables{lists: newLists(), sets: newSets()}
	for _, table := range tables {
		t.names = append(t.names, table.Name)
	}
	slices.Sort(t.names)
	t.names = slices.Compact(t.names)
	t.entries = make([]int, len(t.names))
	var all [2][]placed
	for _, table := range tables {
		number, _ := t.number(table.Name)
		for _, e := range table.Entries {
			p := placeIn(number, e)
			p.order = uint32(len(all[p.family]))
			all[p.family] = append(all[p.family], p)
		}
	}
	for family := range all {
		t.fill(family, all[family])
	}
	return t
}

// A placed is an entry of a table in the form that the tries keep.
type placed struct {
	first  number
	table  uint32
	order  uint32 // position in the input
	bits   uint8
	family uint8
	not    bool
}

func placeIn(table uint32, e resolve.TableEntry) placed {
	p := placed{table: table, not: e.Not, bits: uint8(e.Prefix.Bits())}
	if a := e.Prefix.Addr(); a.Is4() {
		b := a.As4()
		p.first.hi = uint64(binary.BigEndian.Uint32(b[:])) << 32
	} else {
		p.family, p.first = 1, numberOf(a)
	}
	p.first = p.first.cut(p.bits)
	return p
}

// fill puts entries into an empty trie. It sorts them first, because neighbours touch the
// same nodes when they are inserted.
func (t *Tables) fill(family int, all []placed) {
	slices.SortFunc(all, func(a, b placed) int {
		switch {
		case a.first != b.first:
			return a.first.compare(b.first)
		case a.bits != b.bits:
			return cmp.Compare(a.bits, b.bits)
		}
		return cmp.Compare(a.order, b.order)
	})
	in := newTrie(len(all))
	t.families[family] = in
	for _, p := range all {
		n := &in.nodes[in.insert(p.first, p.bits, func(*trieNode) {})]
		if _, ok := t.lists.entry(n.list, p.table); !ok {
			n.list = t.lists.change(n.list, p.table, p.not, false)
			t.entries[p.table]++
		}
	}
}

func (t *Tables) number(name string) (uint32, bool) {
	i, ok := slices.BinarySearch(t.names, name)
	return uint32(i), ok
}

// Len returns how many entries a table has.
func (t *Tables) Len(table string) (int, error) {
	n, ok := t.number(table)
	if !ok {
		return 0, fmt.Errorf("%s: %w", table, ErrNoTable)
	}
	return t.entries[n], nil
}

// Holds reports whether an address is in a table.
func (t *Tables) Holds(table string, a netip.Addr) bool {
	n, ok := t.number(table)
	_, in := slices.BinarySearch(t.sets.all[t.Set(a)], n)
	return ok && in
}

// Set returns the number of the set of tables that contain an address.
func (t *Tables) Set(a netip.Addr) uint32 {
	p := placeIn(0, resolve.TableEntry{Prefix: netip.PrefixFrom(a, a.BitLen())})
	in, set := t.families[p.family], uint32(0)
	for at := in.root; at != 0; {
		n := &in.nodes[at]
		if !n.contains(p.first, p.bits) {
			break
		}
		set = t.sets.inside(t.lists, set, n.list)
		if n.bits == p.bits {
			break
		}
		at = n.child[p.first.bit(n.bits)]
	}
	return set
}

// Entries calls yield with all entries of a table, in order.
func (t *Tables) Entries(table string, yield func(resolve.TableEntry) bool) error {
	number, ok := t.number(table)
	if !ok {
		return fmt.Errorf("%s: %w", table, ErrNoTable)
	}
	for family, in := range t.families {
		if !in.each(in.root, func(n *trieNode) bool {
			not, ok := t.lists.entry(n.list, number)
			return !ok || yield(resolve.TableEntry{Prefix: n.prefix(family), Not: not})
		}) {
			break
		}
	}
	return nil
}

// prefix returns the node's prefix in the user's notation.
func (n *trieNode) prefix(family int) netip.Prefix {
	if family == 0 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(n.first.hi>>32))
		return netip.PrefixFrom(netip.AddrFrom4(b), int(n.bits))
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], n.first.hi)
	binary.BigEndian.PutUint64(b[8:], n.first.lo)
	return netip.PrefixFrom(netip.AddrFrom16(b), int(n.bits))
}

// each visits a node and all nodes below it in order, until visit returns false.
func (t *trie) each(at uint32, visit func(*trieNode) bool) bool {
	if at == 0 {
		return true
	}
	n := &t.nodes[at]
	return visit(n) && t.each(n.child[0], visit) && t.each(n.child[1], visit)
}
