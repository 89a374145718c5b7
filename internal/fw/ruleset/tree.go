package ruleset

// A Forest is a set of search trees. Trees says where the nodes of each are.
type Forest struct {
	Trees []Tree
	Nodes []Node
	Spans []Spans // of Nodes
}

// A leaf is a key of a tree with its value.
type leaf struct {
	key   uint64
	value uint32
}

// addTree appends a tree of leaves, which are in order and begin with key 0. A single
// leaf needs no nodes.
func (p *Forest) addTree(leaves []leaf) Tree {
	if len(leaves) == 1 {
		return Tree{First: leaves[0].value}
	}
	t := Tree{First: uint32(len(p.Nodes)), Nodes: uint32((len(leaves) + nodeKeys - 1) / nodeKeys)}
	p.Nodes = append(p.Nodes, make([]Node, t.Nodes)...)
	p.Spans = append(p.Spans, make([]Spans, t.Nodes)...)
	f := filler{p.Nodes[t.First:], p.Spans[t.First:], leaves, leaves[len(leaves)-1].value}
	f.fill(0)
	return t
}

// A filler puts leaves into nodes in the order of their keys. The leaves to the left of a
// node's key go into its left child first.
type filler struct {
	nodes  []Node
	spans  []Spans
	leaves []leaf // not placed yet
	last   uint32 // value of the last leaf
}

func (f *filler) fill(node int) {
	if node >= len(f.nodes) {
		return
	}
	for i := range nodeKeys {
		f.fill((nodeKeys+1)*node + 1 + i)
		next := leaf{^uint64(0), f.last}
		if len(f.leaves) > 0 {
			next, f.leaves = f.leaves[0], f.leaves[1:]
		}
		f.nodes[node][i], f.spans[node][i] = next.key, next.value
	}
	f.fill((nodeKeys+1)*node + 1 + nodeKeys)
}

// addSmall appends a tree for numbers of up to 64 bits.
func (p *Forest) addSmall(stretches []stretch) Tree {
	leaves := make([]leaf, len(stretches))
	for i, s := range stretches {
		leaves[i] = leaf{s.from.lo, s.class}
	}
	return p.addTree(leaves)
}

// addLarge appends a tree of the upper halves of 128-bit numbers. If stretches begin
// within an upper half, its value is the index of another tree, for the lower halves.
func (p *Forest) addLarge(stretches []stretch) Tree {
	var upper []leaf
	var class uint32 // before the present stretch
	for len(stretches) > 0 {
		within := sameHalf(stretches)
		stretches = stretches[len(within):]
		hi, split := within[0].from.hi, len(within) > 1 || within[0].from.lo != 0
		if within[0].from.lo != 0 {
			within = append([]stretch{{number{hi: hi}, class}}, within...)
		}
		class = within[len(within)-1].class
		if !split {
			upper = append(upper, leaf{hi, class})
			continue
		}
		p.Trees = append(p.Trees, p.addSmall(within))
		upper = append(upper, leaf{hi, spanTree | uint32(len(p.Trees)-1)})
		if hi < ^uint64(0) && (len(stretches) == 0 || stretches[0].from.hi > hi+1) {
			upper = append(upper, leaf{hi + 1, class})
		}
	}
	return p.addTree(upper)
}

// sameHalf returns the stretches that begin in the same upper half as the first one.
func sameHalf(stretches []stretch) []stretch {
	n := 1
	for n < len(stretches) && stretches[n].from.hi == stretches[0].from.hi {
		n++
	}
	return stretches[:n]
}
