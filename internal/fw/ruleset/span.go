package ruleset

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"
)

// A number is a value of a field: an IPv6 address, or anything else with hi 0.
type number struct{ hi, lo uint64 }

func small(n uint64) number { return number{lo: n} }

func (n number) compare(m number) int {
	return cmp.Or(cmp.Compare(n.hi, m.hi), cmp.Compare(n.lo, m.lo))
}

func (n number) less(m number) bool { return n.compare(m) < 0 }

// next returns n + 1. ok is false if there is none.
func (n number) next() (_ number, ok bool) {
	lo, carry := bits.Add64(n.lo, 1, 0)
	hi, carry := bits.Add64(n.hi, 0, carry)
	return number{hi, lo}, carry == 0
}

// previous returns n - 1. n must not be 0.
func (n number) previous() number {
	lo, borrow := bits.Sub64(n.lo, 1, 0)
	return number{n.hi - borrow, lo}
}

// A span is all numbers from first to last.
type span struct{ first, last number }

func smallSpan(first, last uint64) span { return span{small(first), small(last)} }

// appendSpan adds a span that begins after the others, and joins it to the last if they
// touch.
func appendSpan(spans []span, s span) []span {
	if len(spans) > 0 {
		end := &spans[len(spans)-1]
		if next, ok := end.last.next(); ok && !next.less(s.first) {
			if end.last.less(s.last) {
				end.last = s.last
			}
			return spans
		}
	}
	return append(spans, s)
}

// join sorts spans and joins those that touch.
func join(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return a.first.compare(b.first) })
	joined := spans[:0]
	for _, s := range spans {
		joined = appendSpan(joined, s)
	}
	return joined
}

// spanOf returns the addresses of a prefix.
func spanOf(p netip.Prefix) span {
	first := numberOf(p.Masked().Addr())
	last := first
	host := p.Addr().BitLen() - p.Bits()
	last.lo |= lowBits(min(host, 64))
	last.hi |= lowBits(max(host-64, 0))
	return span{first, last}
}

// lowBits returns n ones.
func lowBits(n int) uint64 { return ^uint64(0) >> (64 - n) }

func numberOf(a netip.Addr) number {
	if a.Is4() {
		b := a.As4()
		return small(uint64(binary.BigEndian.Uint32(b[:])))
	}
	b := a.As16()
	return number{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}
