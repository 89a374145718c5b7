package optimize

import "math/bits"

// withoutCovered leaves out rules that another one of the block covers: all that
// they ask for is asked for there, or more. Of equal rules the first stays.
//
// What covers a rule asks for the same or nothing in each field, and for the
// same or a shorter prefix. So instead of comparing all rules, all of these are
// looked up; only those are tried whose form occurs in the block.
func (b block) withoutCovered() block {
	x := newIndex(b)
	out := b[:0:0]
	for i, r := range b {
		if !x.covered(r, int32(i)) {
			out = append(out, r)
		}
	}
	return out
}

// index finds rules by what they ask for.
type index struct {
	open      []open // which fields ask nothing, of each form that occurs
	questions map[question]*lengths
	froms     map[fromKey]*lengths
	rules     map[ruleKey]int32 // the first of equal ones
}

type fromKey struct {
	question *lengths
	from     address
}

type ruleKey struct {
	from *lengths
	to   address
}

func newIndex(b block) *index {
	x := &index{
		questions: make(map[question]*lengths, len(b)),
		froms:     make(map[fromKey]*lengths, len(b)),
		rules:     make(map[ruleKey]int32, len(b)),
	}
	seen := make(map[open]bool)
	for i, r := range b {
		if o := r.question.open(); !seen[o] {
			seen[o] = true
			x.open = append(x.open, o)
		}
		froms := entry(x.questions, r.question)
		froms.add(&r.from)
		tos := entry(x.froms, fromKey{froms, r.from})
		tos.add(&r.to)
		k := ruleKey{tos, r.to}
		if _, ok := x.rules[k]; !ok {
			x.rules[k] = int32(i)
		}
	}
	return x
}

func entry[K comparable](m map[K]*lengths, k K) *lengths {
	l := m[k]
	if l == nil {
		l = &lengths{}
		m[k] = l
	}
	return l
}

// covered reports whether a rule other than r, which is the i-th, covers r.
func (x *index) covered(r *rule, i int32) bool {
	own := r.question.open()
	for _, o := range x.open {
		if own&^o != 0 {
			continue // asks what r does not
		}
		froms := x.questions[r.question.without(o)]
		if froms == nil {
			continue
		}
		if froms.covers(&r.from, r.fromNot, func(from address) bool {
			tos := x.froms[fromKey{froms, from}]
			return tos != nil && tos.covers(&r.to, r.toNot, func(to address) bool {
				first, ok := x.rules[ruleKey{tos, to}]
				return ok && first != i
			})
		}) {
			return true
		}
	}
	return false
}

// open is a set of fields of a question that ask nothing.
type open uint8

const (
	openOn open = 1 << iota
	openDirection
	openFamily
	openProto
	openFlags
	openFromPort
	openToPort
)

func (q *question) open() open {
	var o open
	for _, f := range [...]struct {
		open bool
		bit  open
	}{
		{q.on.name == "", openOn},
		{q.direction == 0, openDirection},
		{q.family == 0, openFamily},
		{q.proto == 0, openProto},
		{q.flags == flags{}, openFlags},
		{!q.fromPort.asked, openFromPort},
		{!q.toPort.asked, openToPort},
	} {
		if f.open {
			o |= f.bit
		}
	}
	return o
}

// without gives the question that asks nothing in these fields.
func (q question) without(o open) question {
	if o&openOn != 0 {
		q.on.name = "" // neither its negation nor its routing domain, as in pfctl
	}
	if o&openDirection != 0 {
		q.direction = 0
	}
	if o&openFamily != 0 {
		q.family = 0
	}
	if o&openProto != 0 {
		q.proto = 0
	}
	if o&openFlags != 0 {
		q.flags = flags{}
	}
	if o&openFromPort != 0 {
		q.fromPort = port{}
	}
	if o&openToPort != 0 {
		q.toPort = port{}
	}
	return q
}

// lengths is a set of the lengths of prefixes.
type lengths [3]uint64

func (l *lengths) add(a *address) {
	if a.kind == prefix {
		l[a.bits/64] |= 1 << (a.bits % 64)
	}
}

// covers reports whether found holds for a, or one of the prefixes whose lengths
// are in l that hold a. Any covers all; of negated addresses, only prefixes.
func (l *lengths) covers(a *address, not bool, found func(address) bool) bool {
	if a.kind != prefix {
		return found(*a) || !not && l[0]&1 != 0 && found(address{})
	}
	for i, word := range l {
		for ; word != 0; word &= word - 1 {
			length := i*64 + bits.TrailingZeros64(word)
			if length > int(a.bits) {
				return false
			}
			if found(a.short(uint8(length))) {
				return true
			}
		}
	}
	return false
}
