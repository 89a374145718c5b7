package ruleset

import (
	"cmp"
	"slices"
)

// A layer is an entry of a table. It adds its addresses to the table. With not, it
// removes them from what a wider layer added.
type layer struct {
	span
	bits int // length of its prefix
	not  bool
}

// A nest goes through layers in order. Two prefixes are nested or disjoint, so those that
// hold the cursor form a stack, the narrowest on top.
type nest struct {
	stack  []layer
	cursor number // all numbers before it are decided
	held   []span
}

// spans returns the addresses of one family that are in the table.
func (e addresses) spans(is4 bool) []span {
	var layers []layer
	for _, entry := range e {
		if entry.Prefix.Addr().Is4() == is4 {
			layers = append(layers, layer{spanOf(entry.Prefix), entry.Prefix.Bits(), entry.Not})
		}
	}
	slices.SortStableFunc(layers, func(a, b layer) int {
		return cmp.Or(a.first.compare(b.first), cmp.Compare(a.bits, b.bits))
	})
	// If several entries have the same prefix, the first counts.
	layers = slices.CompactFunc(layers, func(a, b layer) bool { return a.span == b.span })
	var n nest
	for _, l := range layers {
		n.enter(l)
	}
	for len(n.stack) > 0 {
		n.leave()
	}
	return n.held
}

func (n *nest) enter(l layer) {
	for len(n.stack) > 0 && n.top().last.less(l.first) {
		n.leave()
	}
	if len(n.stack) > 0 && n.cursor.less(l.first) {
		n.decide(l.first.previous())
	}
	n.cursor = l.first
	n.stack = append(n.stack, l)
}

func (n *nest) leave() {
	last := n.top().last
	if !last.less(n.cursor) {
		n.decide(last)
	}
	n.stack = n.stack[:len(n.stack)-1]
	next, ok := last.next()
	if !ok {
		n.stack = nil // all remaining layers end here too
	}
	n.cursor = next
}

func (n *nest) top() *layer { return &n.stack[len(n.stack)-1] }

// decide applies the top layer to the addresses from the cursor to last.
func (n *nest) decide(last number) {
	if !n.top().not {
		n.held = appendSpan(n.held, span{n.cursor, last})
	}
}
