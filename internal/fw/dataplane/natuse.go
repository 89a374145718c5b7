package dataplane

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A NATUse says how many ports of one address source translation uses towards one far
// end. Two connections to a far end must not share a port.
type NATUse struct {
	Proto     uint8
	Address   netip.Addr     // the address that sources are translated to
	Far       netip.AddrPort // of outgoing packets; for ICMP queries the port is their type
	Ports     int            // in use
	Low, High uint16         // lowest and highest port in use
}

// NATUses returns the uses with at least least ports, the fullest first. It reads the
// states twice. The first pass counts in cells that far ends share, with one byte for
// each possible state. The second pass counts the far ends of cells that reach least.
func (v *View) NATUses(least int) []NATUse {
	seed := rand.Uint64()
	cells := make([]uint32, 1<<bits.Len(uint(len(v.tables.states)/8)))
	cell := func(t xdpTuple) *uint32 { return &cells[farHash(seed, t)&uint64(len(cells)-1)] }
	many := false
	for t := range v.translated {
		n := cell(t)
		*n++
		many = many || int(*n) >= least
	}
	if !many {
		return []NATUse{}
	}
	return v.natUses(func(t xdpTuple) bool { return int(*cell(t)) >= least }, least)
}

// natUses counts the connections of the chosen far ends.
func (v *View) natUses(chosen func(xdpTuple) bool, least int) []NATUse {
	uses := map[xdpTuple]*NATUse{}
	for t := range v.translated {
		if !chosen(t) {
			continue
		}
		key, port := t, fromWire(t.Dport)
		key.Dport = 0
		u := uses[key]
		if u == nil {
			u = &NATUse{
				Proto: t.Proto, Address: key.Dst.addr(), Low: port, High: port,
				Far: netip.AddrPortFrom(key.Src.addr(), fromWire(t.Sport)),
			}
			uses[key] = u
		}
		u.Ports++
		u.Low, u.High = min(u.Low, port), max(u.High, port)
	}
	found := []NATUse{}
	for _, u := range uses {
		if u.Ports >= least {
			found = append(found, *u)
		}
	}
	slices.SortFunc(found, func(a, b NATUse) int {
		return cmp.Or(cmp.Compare(b.Ports, a.Ports), cmp.Compare(a.Proto, b.Proto), a.Far.Compare(b.Far), a.Address.Compare(b.Address))
	})
	return found
}

// farHash returns a hash of a reply's tuple without the chosen port.
func farHash(seed uint64, reply xdpTuple) uint64 {
	h := seed
	src, dst := &reply.Src.Word, &reply.Dst.Word
	for _, word := range [...]uint64{
		uint64(src[0]) | uint64(src[1])<<32, uint64(src[2]) | uint64(src[3])<<32,
		uint64(dst[0]) | uint64(dst[1])<<32, uint64(dst[2]) | uint64(dst[3])<<32,
		uint64(reply.Sport) | uint64(reply.Proto)<<16 | uint64(reply.Zone)<<32,
	} {
		h = (h ^ word) * 0xd6e8feb86659fd93 // odd, so nothing is lost
		h ^= h >> 32
	}
	return h
}

// translated yields the reply's tuple of each live connection whose source port was
// translated.
func (v *View) translated(yield func(xdpTuple) bool) {
	for i := range v.live() {
		raw := &v.tables.states[i]
		reply := raw.Back.Tuple
		switch reply.Proto {
		case unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		default:
			continue
		}
		if reply.Dport == raw.Forth.Tuple.Sport || atomic.LoadUint32(&raw.Status) != statusLive {
			continue
		}
		if !yield(reply) {
			return
		}
	}
}
