package ruleset

import "fmt"

// A TableIndex holds the search trees of all tables. The First of a tree is the line of
// its first node. If it has no nodes, First is the set of all its addresses.
type TableIndex struct {
	Tree4, Tree6 Tree
	Lines        []Line
}

// MaxTableLines is the most lines that an index may have: 256 MiB.
const MaxTableLines = 1 << 22

// Trees of the forest that an index is made from.
const (
	tableTree4 = iota
	tableTree6
	tableFirstLow
)

// treesInLine is the number of trees whose positions are in one line.
const treesInLine = lineWords

// MakeIndex makes the search trees of all tables. They include all changes, so no
// override is left. The caller calls release once the index is in force and no packet
// searches the old one.
func (t *Tables) MakeIndex() (*TableIndex, error) {
	f := &Forest{Trees: make([]Tree, tableFirstLow)}
	t.sets.unmark()
	t.behind = false
	small := t.stretches(0)
	for i := range small {
		small[i].from = number{lo: small[i].from.hi >> 32}
	}
	f.Trees[tableTree4] = f.addSmall(small)
	f.Trees[tableTree6] = f.addLarge(t.stretches(1))
	index := f.index()
	if len(index.Lines) > MaxTableLines || len(t.sets.all) > maxSets {
		return nil, fmt.Errorf("%d lines of trees and %d sets of tables: %w", len(index.Lines), len(t.sets.all), ErrTablesFull)
	}
	for family, in := range t.families {
		for _, at := range t.changes[family] {
			in.nodes[at].changed = false
		}
		t.changes[family] = t.changes[family][:0]
		t.families[family] = in.tidied()
	}
	return index, nil
}

// index lays a forest out in lines. First come the positions of its lower-half trees,
// then the trees.
func (f *Forest) index() *TableIndex {
	heads := (len(f.Trees) - tableFirstLow + treesInLine - 1) / treesInLine
	moved := f.Move(uint32(heads), func(value uint32) uint32 {
		if value&spanTree != 0 {
			return value - tableFirstLow
		}
		return value
	})
	index := &TableIndex{Tree4: moved.Trees[tableTree4], Tree6: moved.Trees[tableTree6]}
	index.Lines = append(make([]Line, heads, heads+len(moved.Lines)), moved.Lines...)
	for i, t := range moved.Trees[tableFirstLow:] {
		index.Lines[i/treesInLine][i%treesInLine] = t.word()
	}
	return index
}

// word returns a tree in the form that the programs read.
func (t Tree) word() uint64 { return uint64(t.First) | uint64(t.Nodes)<<32 }

// A walkTables walks a trie in the order of addresses.
type walkTables struct {
	*Tables
	in    *trie
	found []stretch
}

func (t *Tables) stretches(family int) []stretch {
	w := walkTables{Tables: t, in: t.families[family]}
	w.found = make([]stretch, 1, len(w.in.nodes)+2)
	w.under(w.in.root, 0)
	return w.found
}

// under adds the stretches of a node's prefix. around is the set outside it.
func (w *walkTables) under(at, around uint32) {
	if at == 0 {
		return
	}
	n := &w.in.nodes[at]
	set := w.sets.inside(w.lists, around, n.list)
	if set != around {
		w.begin(n.first, set)
	}
	w.under(n.child[0], set)
	w.under(n.child[1], set)
	if set == around {
		return
	}
	if next, ok := n.after(); ok {
		w.begin(next, around)
	}
}

// begin says that the set changes at an address.
func (w *walkTables) begin(at number, set uint32) {
	w.sets.use(set)
	end := &w.found[len(w.found)-1]
	if end.from == at {
		end.class = set
		if n := len(w.found); n > 1 && w.found[n-2].class == set {
			w.found = w.found[:n-1]
		}
		return
	}
	if end.class != set {
		w.found = append(w.found, stretch{at, set})
	}
}

// after returns the first address after the node's prefix. ok is false if its family has
// none.
func (n *trieNode) after() (number, bool) {
	last := n.first
	if n.bits < 64 {
		last.hi |= ^uint64(0) >> n.bits
		last.lo = ^uint64(0)
	} else {
		last.lo |= ^uint64(0) >> (n.bits - 64)
	}
	return last.next()
}
