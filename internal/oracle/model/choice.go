package model

import (
	"encoding/binary"
	"math"
	"math/bits"
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

// A row is a network that a pool chooses from. Next hops may have an interface.
type row struct {
	network netip.Prefix
	iface   string
	weight  uint16 // with least-states; 0 is 1
}

// A hop is what a pool gives: an address, and the interface of a next hop.
type hop struct {
	addr  netip.Addr
	iface string // "": none is named
}

// takeAddress returns the pool's address that replaces one of a packet from src; an
// invalid one if the pool has none of the family.
func (m *Model) takeAddress(t *resolve.Translation, family int, src, replaced netip.Addr) netip.Addr {
	var rows []row
	for i := range t.Addrs {
		for _, p := range m.pool(&t.Addrs[i], family) {
			rows = append(rows, row{network: p, weight: t.Addrs[i].Weight})
		}
	}
	return m.choose(rows, &t.Choice, turn{t, family}, src, replaced).addr
}

// choose takes an address from rows. A pool of one address has no turns.
func (m *Model) choose(rows []row, how *resolve.Choice, turn turn, src, replaced netip.Addr) hop {
	switch {
	case len(rows) == 0:
		return hop{}
	case how.Type == resolve.Bitmask:
		return hop{inNetwork(rows[0].network, replaced), rows[0].iface}
	}
	keeps := keeper{turn, src}
	if kept, ok := m.sticky[keeps]; ok && how.Sticky {
		return kept
	}
	chosen := m.chooseNow(rows, how, turn, src)
	if how.Sticky {
		m.sticky[keeps] = chosen
	}
	return chosen
}

// A keeper is a source that keeps the address of a pool.
type keeper struct {
	turn
	addr netip.Addr
}

func (m *Model) chooseNow(rows []row, how *resolve.Choice, turn turn, src netip.Addr) hop {
	switch {
	case len(rows) == 1 && rows[0].network.IsSingleIP():
		return hop{rows[0].network.Addr(), rows[0].iface}
	case how.Type == resolve.SourceHash:
		return inTurn(rows, hashOf(how, src))
	case how.Type == resolve.LeastStates:
		return m.leastStates(rows, how, turn)
	}
	n := m.turns[turn]
	m.turns[turn]++
	if how.Type == resolve.Random {
		return inTurn(rows, mix(m.poolSecret+n*0x9e3779b97f4a7c15))
	}
	return inTurn(rows, n)
}

// SetPoolSecret sets the number that the order of random pools begins with.
func (m *Model) SetPoolSecret(secret uint64) { m.poolSecret = secret }

// ForgetSources forgets which addresses sources keep.
func (m *Model) ForgetSources() { clear(m.sticky) }

// hashOf returns a hash of a source address, the same for the same key.
func hashOf(how *resolve.Choice, src netip.Addr) uint64 {
	a := src.As16()
	word := func(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
	h := mix(word(how.Key[:8]) ^ word(a[:8]))
	return mix(h ^ word(how.Key[8:]) ^ word(a[8:]))
}

// mix mixes the bits of a number (splitmix64).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
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
func inTurn(rows []row, n uint64) hop {
	h, _ := at(rows, n%total(rows))
	return h
}

// total returns how many addresses all rows have.
func total(rows []row) uint64 {
	total := uint64(0)
	for _, r := range rows {
		if sum, over := bits.Add64(total, r.size(), 0); over == 0 {
			total = sum
		} else {
			total = math.MaxUint64
		}
	}
	return total
}

// at returns the n-th address of all rows, from 0, and its weight.
func at(rows []row, n uint64) (hop, uint64) {
	for _, r := range rows {
		if n < r.size() {
			return hop{nth(r.network.Addr(), n), r.iface}, max(uint64(r.weight), 1)
		}
		n -= r.size()
	}
	return hop{}, 1
}

// size returns how many addresses a row has.
func (r row) size() uint64 { return 1 << min(r.network.Addr().BitLen()-r.network.Bits(), 63) }

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

// choosePort sets the port of reply to seen if it is one of the ports and free, else to
// the first free one; false if none is free. The reply must not look like asked, the
// packet that makes the state.
func (m *Model) choosePort(asked, reply state.Tuple, ports portSet, made *state.State, taken func(state.Tuple) bool) (state.Tuple, bool) {
	free := func(t state.Tuple) bool { return t != asked && m.free(t) && (taken == nil || !taken(t)) }
	if made != nil && ports.has(made.Tuple[1].DPort) {
		reply.DPort = made.Tuple[1].DPort
		if free(reply) {
			return reply, true
		}
	}
	for port := int(ports.low); port <= int(ports.high); port++ {
		reply.DPort = uint16(port)
		if ports.has(reply.DPort) && free(reply) {
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
