package model

import (
	"net/netip"
	"slices"

	"weir/internal/state"
	"weir/pf/resolve"
)

// What the dataplane may choose: which address of a pool, and which source
// port. Where the caller shows the state that the dataplane made, the model
// adopts its choice if the rules allow it, else takes the first that they allow.

// natPortLow and natPortHigh are pf's range for nat-to without one.
const (
	natPortLow  = 50001
	natPortHigh = 65535
)

func natSeen(made *state.State) netip.Addr {
	if made == nil {
		return netip.Addr{}
	}
	return made.Tuple[1].Dst
}

func rdrSeen(made *state.State) netip.Addr {
	if made == nil {
		return netip.Addr{}
	}
	return made.Tuple[1].Src
}

// chooseAddress returns the address seen if the pool holds it, else the pool's
// first of the family; an invalid one if there is none.
func (m *Model) chooseAddress(t *resolve.Translation, family int, seen netip.Addr) netip.Addr {
	var first netip.Addr
	for i := range t.Addrs {
		for _, p := range m.pool(&t.Addrs[i], family) {
			if seen.IsValid() && p.Contains(seen) {
				return seen
			}
			if !first.IsValid() {
				first = p.Addr()
			}
		}
	}
	return first
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
// else the range's first free one; false if none is.
func (m *Model) choosePort(reply state.Tuple, low, high uint16, made *state.State) (state.Tuple, bool) {
	if made != nil && made.Tuple[1].DPort >= low && made.Tuple[1].DPort <= high {
		reply.DPort = made.Tuple[1].DPort
		if m.free(reply) {
			return reply, true
		}
	}
	for port := int(low); port <= int(high); port++ {
		reply.DPort = uint16(port)
		if m.free(reply) {
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
