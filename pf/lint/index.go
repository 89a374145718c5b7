package lint

import (
	"hash/maphash"

	"weir/pf/resolve"
)

// Bounds that keep the cost linear: of what there is more, nothing is found.
const (
	maxShapes  = 64 // of an index
	maxInPlace = 32 // rules under one key
)

// An index finds, among rules of one direction and family, those that ask for no
// more of interface, protocol and addresses than a rule does.
type index struct {
	shapes []shape
	known  map[shape]bool
	seed   maphash.Seed
	rules  map[uint64][]*resolve.Rule // by the hash of shape and key, which are large
}

// A shape says what a rule asks for, but not the values.
type shape struct {
	iface    bool
	proto    bool
	from, to addressShape
}

// An addressShape is 0 for any address, 1 for one that only the same covers, and
// 2 and more for prefixes: 2 and the length.
type addressShape int

const (
	sameAddress  addressShape = 1
	prefixOfZero addressShape = 2
)

// A key holds the values that a shape asks for; the others are zero.
type key struct {
	iface    resolve.Interface
	proto    uint8
	from, to resolve.Address
}

type shaped struct {
	shape
	key
}

func shapeOf(r *resolve.Rule) shape {
	return shape{!r.Interface.Any, r.Proto != 0, addressShapeOf(&r.From.Addr), addressShapeOf(&r.To.Addr)}
}

func addressShapeOf(a *resolve.Address) addressShape {
	switch {
	case a.Kind == resolve.AnyAddress:
		return 0
	case a.Kind == resolve.PrefixAddress && !a.Not:
		return prefixOfZero + addressShape(a.Prefix.Bits())
	}
	return sameAddress
}

// keyOf gives the values of a rule that a shape asks for. It reports false where
// the rule is for more than any rule of that shape is.
func keyOf(s shape, r *resolve.Rule) (k key, ok bool) {
	if s.iface && r.Interface.Any || s.proto && r.Proto == 0 {
		return k, false
	}
	if s.iface {
		k.iface = r.Interface
	}
	if s.proto {
		k.proto = r.Proto
	}
	if k.from, ok = addressIn(s.from, &r.From.Addr); !ok {
		return k, false
	}
	k.to, ok = addressIn(s.to, &r.To.Addr)
	return k, ok
}

// addressIn gives the address of a shape that holds a.
func addressIn(s addressShape, a *resolve.Address) (resolve.Address, bool) {
	switch has := addressShapeOf(a); {
	case s == 0:
		return resolve.Address{}, true
	case s == sameAddress:
		return *a, has == sameAddress
	case has < s:
		return resolve.Address{}, false
	}
	prefix, err := a.Prefix.Addr().Prefix(int(s - prefixOfZero))
	return resolve.Address{Kind: resolve.PrefixAddress, Prefix: prefix}, err == nil
}

func newIndex() *index {
	return &index{known: make(map[shape]bool), seed: maphash.MakeSeed(), rules: make(map[uint64][]*resolve.Rule)}
}

// add enters a rule.
func (x *index) add(r *resolve.Rule) {
	s := shapeOf(r)
	if !x.known[s] {
		if len(x.shapes) == maxShapes {
			return
		}
		x.known[s] = true
		x.shapes = append(x.shapes, s)
	}
	k, _ := keyOf(s, r)
	at := maphash.Comparable(x.seed, shaped{s, k})
	if len(x.rules[at]) < maxInPlace {
		x.rules[at] = append(x.rules[at], r)
	}
}

// asks reports whether a rule is of that shape and asks for these values.
func asks(r *resolve.Rule, s shape, k *key) bool {
	own, _ := keyOf(s, r)
	return shapeOf(r) == s && own == *k
}

// find gives a rule of another statement that takes all packets of r, nil if
// none is found.
func (x *index) find(r *resolve.Rule) *resolve.Rule {
	for _, s := range x.shapes {
		k, ok := keyOf(s, r)
		if !ok {
			continue
		}
		for _, q := range x.rules[maphash.Comparable(x.seed, shaped{s, k})] {
			if q.Stmt != r.Stmt && covers(q, r) && asks(q, s, &k) {
				return q
			}
		}
	}
	return nil
}
