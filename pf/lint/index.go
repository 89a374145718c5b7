package lint

import (
	"hash/maphash"

	"weir/pf/resolve"
)

// Bounds that keep the cost linear. Beyond them, nothing is found.
const (
	maxShapes  = 64 // per index
	maxInPlace = 32 // rules per key
)

// An index finds rules that cover a given rule: rules of one direction and family that
// ask for no more of interface, protocol and addresses.
type index struct {
	shapes []shape
	known  map[shape]bool
	seed   maphash.Seed
	rules  map[uint64][]*resolve.Rule // by the hash of shape and key, which are large
}

// A shape says which fields a rule asks for, without the values.
type shape struct {
	iface    bool
	proto    bool
	from, to addressShape
}

// An addressShape is 0 for any address, 1 for an address that only an equal one covers,
// and 2 plus the length for prefixes.
type addressShape int

const (
	sameAddress  addressShape = 1
	prefixOfZero addressShape = 2
)

// A key holds the values of the fields in a shape. Other fields are zero.
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

// keyOf returns a rule's values for the fields of a shape. It returns false if the rule
// is wider than any rule of that shape.
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

// addressIn returns the address of a shape that contains a.
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

// add adds a rule.
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

// hasValues reports whether a rule has this shape and these values.
func hasValues(r *resolve.Rule, s shape, k *key) bool {
	own, _ := keyOf(s, r)
	return shapeOf(r) == s && own == *k
}

// find returns a rule of another statement that takes all packets of r, or nil.
func (x *index) find(r *resolve.Rule) *resolve.Rule {
	for _, s := range x.shapes {
		k, ok := keyOf(s, r)
		if !ok {
			continue
		}
		for _, q := range x.rules[maphash.Comparable(x.seed, shaped{s, k})] {
			if q.Stmt != r.Stmt && covers(q, r) && hasValues(q, s, &k) {
				return q
			}
		}
	}
	return nil
}
