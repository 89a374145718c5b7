package ruleset

import (
	"cmp"
	"slices"
)

// A layer is an entry of a table: addresses that it puts into the table or, with
// not, takes out of what a wider layer put in.
type layer struct {
	span
	bits int // of its prefix
	not  bool
}

// A nest goes through layers in order. Prefixes are nested or apart, so those
// that hold the cursor are a stack, the narrowest on top.
type nest struct {
	stack  []layer
	cursor number // what is before it has been decided
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
	// Of entries for the same prefix the first counts.
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
		n.stack = nil // all that are left end here too
	}
	n.cursor = next
}

func (n *nest) top() *layer { return &n.stack[len(n.stack)-1] }

// decide does what the top says with the addresses from the cursor to last.
func (n *nest) decide(last number) {
	if !n.top().not {
		n.held = appendSpan(n.held, span{n.cursor, last})
	}
}
