package model

import (
	"net/netip"
	"slices"

	"weir/internal/state"
	"weir/pf/resolve"
)

// What the dataplane may choose is which source port a translation gets. Where
// the caller shows the state that the dataplane made, the model adopts its
// choice if the rules allow it, else takes the first that they allow. Addresses
// of pools are no choice: they are used in turn.

// natPortLow and natPortHigh are pf's range for nat-to without one.
const (
	natPortLow  = 50001
	natPortHigh = 65535
)

// A turn tells how many addresses of a family a translation has given out.
type turn struct {
	of     *resolve.Translation
	family int
}

// takeAddress returns the next address of the pool; an invalid one if it has
// none of the family. A pool of one address has no turns.
func (m *Model) takeAddress(t *resolve.Translation, family int) netip.Addr {
	var rows []netip.Prefix
	for i := range t.Addrs {
		rows = append(rows, m.pool(&t.Addrs[i], family)...)
	}
	if len(rows) == 0 {
		return netip.Addr{}
	}
	if len(rows) == 1 && rows[0].IsSingleIP() {
		return rows[0].Addr()
	}
	n := m.turns[turn{t, family}]
	m.turns[turn{t, family}]++
	return inTurn(rows, n)
}

// inTurn returns the n-th address of all rows, from the beginning again after
// the last.
func inTurn(rows []netip.Prefix, n uint64) netip.Addr {
	for {
		for _, p := range rows {
			size := uint64(1) << min(p.Addr().BitLen()-p.Bits(), 63)
			if n < size {
				return nth(p.Addr(), n)
			}
			n -= size
		}
	}
}

// nth returns the n-th address from first on.
func nth(first netip.Addr, n uint64) netip.Addr {
	b := first.AsSlice()
	for i := len(b) - 1; n > 0; i-- {
		n += uint64(b[i])
		b[i] = byte(n)
		n >>= 8
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// pool returns what a translation's address stands for in a family. (if) leaves
// out link-local addresses: nobody beyond the link could answer them.
func (m *Model) pool(a *resolve.Address, family int) []netip.Prefix {
	found := []netip.Prefix{a.Prefix.Masked()}
	if a.Kind == resolve.InterfaceAddress {
		found = m.box.dynamic(a, func(has netip.Addr) bool { return !has.IsLinkLocalUnicast() })
	}
	return slices.DeleteFunc(found, func(p netip.Prefix) bool { return familyOf(p.Addr()) != family })
}

// choosePort gives reply the port seen if it lies in the range and is free,
// else the range's first free one; false if none is. The reply must not look like
// asked, the packet that makes the state.
func (m *Model) choosePort(asked, reply state.Tuple, low, high uint16, made *state.State) (state.Tuple, bool) {
	if made != nil && made.Tuple[1].DPort >= low && made.Tuple[1].DPort <= high {
		reply.DPort = made.Tuple[1].DPort
		if reply != asked && m.free(reply) {
			return reply, true
		}
	}
	for port := int(low); port <= int(high); port++ {
		reply.DPort = uint16(port)
		if reply != asked && m.free(reply) {
			return reply, true
		}
	}
	return reply, false
}

// free reports whether no live state owns the tuple; an expired owner gives way.
func (m *Model) free(t state.Tuple) bool {
	c, _ := m.find(t)
	return c == nil
}
