package ruleset

import "math/bits"

// A trie holds prefixes of one family, each with a list of tables (members.go). IPv4
// addresses are in the upper 32 bits of a number. The nodes are in one slice without
// pointers. So a million prefixes take 64 MB, and Go's garbage collector does not scan
// them.
type trie struct {
	nodes []trieNode // [0] is unused: index 0 means no node
	root  uint32
}

// A trieNode is a prefix. If no table has it (list 0), it joins two others, or it once
// had a list.
type trieNode struct {
	first   number
	child   [2]uint32 // by the first bit after the prefix
	list    uint32    // of tables that have the prefix as an entry; 0: none
	bits    uint8
	changed bool // not in the address trees yet: changes holds the prefix
}

func newTrie(prefixes int) *trie {
	return &trie{nodes: make([]trieNode, 1, 2*prefixes+1)}
}

// bit returns bit i of a number. Bit 0 is the highest.
func (n number) bit(i uint8) int {
	if i < 64 {
		return int(n.hi >> (63 - i) & 1)
	}
	return int(n.lo >> (127 - i) & 1)
}

// common returns how many leading bits two numbers have in common.
func (n number) common(m number) uint8 {
	if n.hi != m.hi {
		return uint8(bits.LeadingZeros64(n.hi ^ m.hi))
	}
	return uint8(64 + bits.LeadingZeros64(n.lo^m.lo))
}

// cut clears all bits after the first length bits.
func (n number) cut(length uint8) number {
	if length < 64 {
		return number{hi: n.hi &^ (^uint64(0) >> length)}
	}
	return number{n.hi, n.lo &^ (^uint64(0) >> (length - 64))}
}

// contains reports whether the node's prefix contains another one.
func (n *trieNode) contains(first number, length uint8) bool {
	return n.bits <= length && n.first.common(first) >= n.bits
}

// insert returns the node of a prefix, and makes it if there is none. It calls visit with
// the nodes of all shorter prefixes that contain it, the shortest first.
func (t *trie) insert(first number, length uint8, visit func(*trieNode)) uint32 {
	link, parent, side := t.root, uint32(0), 0
	for link != 0 && t.nodes[link].contains(first, length) {
		n := &t.nodes[link]
		if n.bits == length {
			return link
		}
		visit(n)
		parent, side = link, first.bit(n.bits)
		link = n.child[side]
	}
	made := t.add(first, length)
	if link != 0 {
		made = t.split(link, made)
	}
	if parent == 0 {
		t.root = made
	} else {
		t.nodes[parent].child[side] = made
	}
	if n := &t.nodes[made]; n.bits != length {
		visit(n)
		return n.child[first.bit(n.bits)]
	}
	return made
}

// find returns the node of a prefix, or 0 if there is none.
func (t *trie) find(first number, length uint8) uint32 {
	for at := t.root; at != 0; {
		n := &t.nodes[at]
		if !n.contains(first, length) {
			return 0
		}
		if n.bits == length {
			return at
		}
		at = n.child[first.bit(n.bits)]
	}
	return 0
}

func (t *trie) add(first number, length uint8) uint32 {
	t.nodes = append(t.nodes, trieNode{first: first, bits: length})
	return uint32(len(t.nodes) - 1)
}

// split puts a new node above a node that it contains, or puts both below a node that
// joins them. It returns the upper one.
func (t *trie) split(old, made uint32) uint32 {
	a, b := &t.nodes[old], &t.nodes[made]
	length := min(a.first.common(b.first), a.bits, b.bits)
	if length == b.bits {
		b.child[a.first.bit(length)] = old
		return made
	}
	join := t.add(b.first.cut(length), length)
	n := &t.nodes[join]
	side := t.nodes[old].first.bit(length)
	n.child[side], n.child[1-side] = old, made
	return join
}

// tidied returns the trie. If too many of its prefixes are in no table, it returns a new
// trie without them. Each prefix needs at most one extra node.
func (t *trie) tidied() *trie {
	lists := 0
	for i := range t.nodes {
		if t.nodes[i].list != 0 {
			lists++
		}
	}
	if len(t.nodes) <= 4*lists+tidyFrom {
		return t
	}
	small := newTrie(lists)
	t.each(t.root, func(n *trieNode) bool {
		if n.list != 0 {
			made := small.insert(n.first, n.bits, func(*trieNode) {})
			small.nodes[made].list = n.list
		}
		return true
	})
	return small
}

// tidyFrom is how many unused nodes are tolerated.
const tidyFrom = 1024
