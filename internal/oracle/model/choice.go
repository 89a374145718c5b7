package model

import (
	"hash/fnv"
	"net/netip"
	"slices"

	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// The dataplane may choose the source port of a translation. If the caller shows the
// state that the dataplane made, the model uses its choice if the rules allow it. Else it
// takes the first port that they allow. Addresses of pools are no choice: they are used
// in turn.

// natPortLow and natPortHigh are pf's range for nat-to without one.
const (
	natPortLow  = 50001
	natPortHigh = 65535
)

// A turn counts the addresses of a family that a translation has given out.
type turn struct {
	of     any // *resolve.Translation or *resolve.Route
	family int
}

// takeAddress returns the pool's address that replaces one of a packet from src; an
// invalid one if the pool has none of the family.
func (m *Model) takeAddress(t *resolve.Translation, family int, src, replaced netip.Addr) netip.Addr {
	var rows []netip.Prefix
	for i := range t.Addrs {
		rows = append(rows, m.pool(&t.Addrs[i], family)...)
	}
	return m.choose(rows, &t.Choice, turn{t, family}, src, replaced)
}

// choose takes an address from rows. A pool of one address has no turns. If any address
// will do, or the one with the fewest states, the model takes turns.
func (m *Model) choose(rows []netip.Prefix, how *resolve.Choice, turn turn, src, replaced netip.Addr) netip.Addr {
	switch {
	case len(rows) == 0:
		return netip.Addr{}
	case len(rows) == 1 && rows[0].IsSingleIP():
		return rows[0].Addr()
	case how.Type == resolve.Bitmask:
		return inNetwork(rows[0], replaced)
	case how.Type == resolve.SourceHash:
		return inTurn(rows, hashOf(how, src))
	}
	n := m.turns[turn]
	m.turns[turn]++
	return inTurn(rows, n)
}

// hashOf returns a hash of a source address, the same for the same key.
func hashOf(how *resolve.Choice, src netip.Addr) uint64 {
	h := fnv.New64a()
	h.Write(how.Key[:])
	h.Write(src.AsSlice())
	return h.Sum64() >> 1
}

// inNetwork returns a with its first bits replaced by those of a network.
func inNetwork(network netip.Prefix, a netip.Addr) netip.Addr {
	if network.Addr().BitLen() != a.BitLen() {
		return netip.Addr{}
	}
	first, host := network.Masked().Addr().AsSlice(), a.AsSlice()
	for bit := network.Bits(); bit < len(host)*8; bit++ {
		first[bit/8] |= host[bit/8] & (0x80 >> (bit % 8))
	}
	joined, _ := netip.AddrFromSlice(first)
	return joined
}

// inTurn returns the n-th address of all rows, and begins again after the last.
func inTurn(rows []netip.Prefix, n uint64) netip.Addr {
	total := uint64(0)
	for _, p := range rows {
		total = min(total, 1<<62) + 1<<min(p.Addr().BitLen()-p.Bits(), 62)
	}
	for n %= total; ; {
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

// pool returns the addresses of a translation in a family. (if) leaves out deprecated
// addresses, and link-local ones: nobody beyond the link could reply to them.
func (m *Model) pool(a *resolve.Address, family int) []netip.Prefix {
	found := []netip.Prefix{a.Prefix.Masked()}
	if a.Kind == resolve.InterfaceAddress {
		found = m.box.dynamic(a, func(i *Interface, has netip.Addr) bool {
			return !has.IsLinkLocalUnicast() && !slices.Contains(i.Deprecated, has)
		})
	}
	return slices.DeleteFunc(found, func(p netip.Prefix) bool { return familyOf(p.Addr()) != family })
}

// choosePort sets the port of reply to seen if it is in the range and free, else to the
// range's first free one; false if none is free. The reply must not look like asked, the
// packet that makes the state.
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

// free reports whether no live state owns the tuple; an expired owner yields.
func (m *Model) free(t state.Tuple) bool {
	c, _ := m.find(t)
	return c == nil
}
