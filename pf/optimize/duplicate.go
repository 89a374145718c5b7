package optimize

import "math/bits"

// withoutCovered removes rules that another rule of the block covers: one that asks for
// the same or for less. Of equal rules the first stays.
//
// In each field, a covering rule asks for the same or for nothing, and its prefixes are
// the same or shorter. So the covering candidates are looked up instead of comparing all
// pairs. Only forms that occur in the block are tried.
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

// index finds rules by what they ask for. It works with numbers, because questions and
// addresses are long and most occur many times.
type index struct {
	open         []open // the sets of empty fields that occur
	questions    map[conditions]int32
	addresses    map[address]int32
	sources      []lengths // by question: lengths of the source prefixes
	froms        map[pair]int32
	destinations []lengths      // by question and source (a number of froms): lengths of the destination prefixes
	rules        map[pair]int32 // by number of froms and destination: the first of equal rules
}

// pair is two numbers.
type pair [2]int32

// numbers identify what a rule asks for. Rules of one block that ask the same have the
// same numbers.
type numbers struct{ question, from, to int32 }

// newIndex indexes a block and numbers its rules.
func newIndex(b block) *index {
	x := &index{
		questions: make(map[conditions]int32), addresses: make(map[address]int32),
		froms: make(map[pair]int32, len(b)), rules: make(map[pair]int32, len(b)),
		destinations: make([]lengths, 0, len(b)),
	}
	seen := make(map[open]bool)
	for i, r := range b {
		if o := r.conditions.open(); !seen[o] {
			seen[o] = true
			x.open = append(x.open, o)
		}
		r.numbers = numbers{number(x.questions, r.conditions), number(x.addresses, r.from), number(x.addresses, r.to)}
		from := number(x.froms, pair{r.numbers.question, r.numbers.from})
		add(&x.sources, r.numbers.question, &r.from)
		add(&x.destinations, from, &r.to)
		k := pair{from, r.numbers.to}
		if _, ok := x.rules[k]; !ok {
			x.rules[k] = int32(i)
		}
	}
	return x
}

// number returns the number of k, and gives out the next one if k is new.
func number[K comparable](all map[K]int32, k K) int32 {
	n, ok := all[k]
	if !ok {
		n = int32(len(all))
		all[k] = n
	}
	return n
}

// add adds a prefix length to set n, which may be the first missing one.
func add(sets *[]lengths, n int32, a *address) {
	if int(n) == len(*sets) {
		*sets = append(*sets, lengths{})
	}
	(*sets)[n].add(a)
}

// covered reports whether a rule other than r covers r. i is the index of r.
func (x *index) covered(r *rule, i int32) bool {
	own := r.conditions.open()
	for _, o := range x.open {
		if own&^o != 0 {
			continue // asks for something that r does not
		}
		q, ok := r.numbers.question, o == own
		if !ok {
			q, ok = x.questions[r.conditions.without(o)]
		}
		if ok && x.covers(&x.sources[q], &r.from, r.numbers.from, r.fromNot, func(from int32) bool {
			tos, ok := x.froms[pair{q, from}]
			return ok && x.covers(&x.destinations[tos], &r.to, r.numbers.to, r.toNot, func(to int32) bool {
				first, ok := x.rules[pair{tos, to}]
				return ok && first != i
			})
		}) {
			return true
		}
	}
	return false
}

// covers calls found for a, whose number is own, and for all prefixes with lengths in l
// that contain a, until it returns true. The prefix of length 0 contains everything. For
// negated addresses only prefixes count.
func (x *index) covers(l *lengths, a *address, own int32, not bool, found func(int32) bool) bool {
	if a.kind != prefix {
		return found(own) || !not && l[0]&1 != 0 && x.holds(address{}, found)
	}
	for i, word := range l {
		for ; word != 0; word &= word - 1 {
			length := i*64 + bits.TrailingZeros64(word)
			if length > int(a.bits) {
				return false
			}
			if short := a.short(uint8(length)); short == *a && found(own) || short != *a && x.holds(short, found) {
				return true
			}
		}
	}
	return false
}

// holds calls found for an address if some rule asks for it.
func (x *index) holds(a address, found func(int32) bool) bool {
	n, ok := x.addresses[a]
	return ok && found(n)
}

// open is the set of a question's empty fields.
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

func (q *conditions) open() open {
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

// without returns the question with these fields empty.
func (q conditions) without(o open) conditions {
	if o&openOn != 0 {
		q.on.name = "" // the negation and the routing domain stay, as in pfctl
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

// lengths is a set of prefix lengths.
type lengths [3]uint64

func (l *lengths) add(a *address) {
	if a.kind == prefix {
		l[a.bits/64] |= 1 << (a.bits % 64)
	}
}
