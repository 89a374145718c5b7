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

// A NATUse is what translation of sources uses of one address's ports towards one far
// end: no two connections there may have the same.
type NATUse struct {
	Proto     uint8
	Address   netip.Addr     // that sources are translated to
	Far       netip.AddrPort // as packets go out; of ICMP queries the port is their type
	Ports     int            // in use
	Low, High uint16         // the lowest and the highest of them
}

// NATUses are those with so many ports in use or more, the fullest first. States are read
// twice: first they are counted in cells that far ends share, a byte of memory for each
// state there may be; then those of cells that have enough, by their far ends.
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

// natUses counts the connections of chosen far ends.
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

// farHash is a number for all of a reply's tuple but the port that was chosen.
func farHash(seed uint64, reply xdpTuple) uint64 {
	h := seed
	src, dst := &reply.Src.Word, &reply.Dst.Word
	for _, word := range [...]uint64{
		uint64(src[0]) | uint64(src[1])<<32, uint64(src[2]) | uint64(src[3])<<32,
		uint64(dst[0]) | uint64(dst[1])<<32, uint64(dst[2]) | uint64(dst[3])<<32,
		uint64(reply.Sport) | uint64(reply.Proto)<<16 | uint64(reply.Zone)<<32,
	} {
		h = (h ^ word) * 0xd6e8feb86659fd93 // odd: nothing is lost
		h ^= h >> 32
	}
	return h
}

// translated gives the reply's tuple of each live connection whose source got another
// port.
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
