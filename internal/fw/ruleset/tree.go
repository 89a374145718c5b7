package ruleset

import "math"

// A Forest is a set of search trees (bpf/rules/search.h). Trees says where the lines of
// each are.
type Forest struct {
	Trees []Tree
	Lines []Line
}

// A Tree is a search tree's position in Lines. If it has no nodes, First is the value of
// all numbers. A value is the index of a class, or SpanTree and the index of a tree.
//
// A small tree, of numbers below 2^32, has one line for each node. A large one also has
// the values of its keys, in lines behind its nodes.
type Tree struct {
	First, Nodes uint32
	large        bool
}

// A Line is a cache line of a tree, as the programs read it.
type Line [lineWords]uint64

const (
	nodeKeys  = 8
	lineWords = 8
	// valuesInLine is the number of values in a line behind a large tree's nodes.
	valuesInLine = 2 * lineWords
)

// lines returns the number of a tree's lines.
func (t Tree) lines() uint32 {
	if !t.large {
		return t.Nodes
	}
	return t.Nodes + (t.Nodes*nodeKeys+valuesInLine-1)/valuesInLine
}

// A leaf is a key of a tree with its value.
type leaf struct {
	key   uint64
	value uint32
}

// addTree appends a tree of leaves, which are in order and begin with key 0. A single
// leaf needs no nodes.
func (p *Forest) addTree(leaves []leaf, large bool) Tree {
	if len(leaves) == 1 {
		return Tree{First: leaves[0].value, large: large}
	}
	t := Tree{First: uint32(len(p.Lines)), Nodes: uint32((len(leaves) + nodeKeys - 1) / nodeKeys), large: large}
	p.Lines = append(p.Lines, make([]Line, t.lines())...)
	f := filler{t, p.Lines[t.First:], leaves, leaf{^uint64(0), leaves[len(leaves)-1].value}}
	f.fill(0)
	return t
}

// A filler puts leaves into nodes in the order of their keys. The leaves to the left of a
// node's key go into its left child first.
type filler struct {
	Tree
	lines  []Line
	leaves []leaf // not placed yet
	rest   leaf   // for unused keys
}

func (f *filler) fill(node uint32) {
	if node >= f.Nodes {
		return
	}
	for i := range uint32(nodeKeys) {
		f.fill((nodeKeys+1)*node + 1 + i)
		next := f.rest
		if len(f.leaves) > 0 {
			next, f.leaves = f.leaves[0], f.leaves[1:]
		}
		f.put(node, i, next)
	}
	f.fill((nodeKeys+1)*node + 1 + nodeKeys)
}

func (f *filler) put(node, i uint32, l leaf) {
	if f.large {
		f.lines[node][i] = l.key
		at := node*nodeKeys + i
		f.lines[f.Nodes+at/valuesInLine].set(at%valuesInLine, l.value)
		return
	}
	f.lines[node].set(i, uint32(l.key))
	f.lines[node].set(nodeKeys+i, l.value)
}

// set sets one of the sixteen numbers of 32 bits in a line.
func (l *Line) set(i, value uint32) {
	shift := i % 2 * 32
	l[i/2] = l[i/2]&^(0xffffffff<<shift) | uint64(value)<<shift
}

func (l *Line) get(i uint32) uint32 { return uint32(l[i/2] >> (i % 2 * 32)) }

// Move returns the trees and lines as they are if they begin at line first and every
// value is replaced with its new one.
func (p *Forest) Move(first uint32, replace func(uint32) uint32) Forest {
	moved := Forest{Trees: make([]Tree, len(p.Trees)), Lines: make([]Line, len(p.Lines))}
	copy(moved.Lines, p.Lines)
	for i, t := range p.Trees {
		moved.Trees[i] = t
		if t.Nodes == 0 {
			moved.Trees[i].First = replace(t.First)
			continue
		}
		moved.Trees[i].First = first + t.First
		lines := moved.Lines[t.First:][:t.lines()]
		values := uint32(nodeKeys) // where they begin in a line
		if t.large {
			lines, values = lines[t.Nodes:], 0
		}
		for j := range lines {
			for k := values; k < valuesInLine; k++ {
				lines[j].set(k, replace(lines[j].get(k)))
			}
		}
	}
	return moved
}

// addSmall appends a tree for numbers of up to 32 bits. A stretch may begin behind them.
func (p *Forest) addSmall(stretches []stretch) Tree {
	leaves := leavesOf(stretches)
	for leaves[len(leaves)-1].key > math.MaxUint32 {
		leaves = leaves[:len(leaves)-1]
	}
	return p.addTree(leaves, false)
}

// leavesOf returns the leaves of stretches that have the same upper half.
func leavesOf(stretches []stretch) []leaf {
	leaves := make([]leaf, len(stretches))
	for i, s := range stretches {
		leaves[i] = leaf{s.from.lo, s.class}
	}
	return leaves
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
		p.Trees = append(p.Trees, p.addTree(leavesOf(within), true))
		upper = append(upper, leaf{hi, spanTree | uint32(len(p.Trees)-1)})
		if hi < ^uint64(0) && (len(stretches) == 0 || stretches[0].from.hi > hi+1) {
			upper = append(upper, leaf{hi + 1, class})
		}
	}
	return p.addTree(upper, true)
}

// sameHalf returns the stretches that begin in the same upper half as the first one.
func sameHalf(stretches []stretch) []stretch {
	n := 1
	for n < len(stretches) && stretches[n].from.hi == stretches[0].from.hi {
		n++
	}
	return stretches[:n]
}
