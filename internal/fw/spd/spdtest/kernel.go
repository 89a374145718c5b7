// Package spdtest has what tests need that compare tables of IPsec policies with the kernel:
// random policies, and a slow and obvious look-up as the kernel does it.
package spdtest

import (
	"math/rand/v2"
	"net/netip"

	"weir/internal/fw/spd"
	"weir/internal/host/xfrm"
)

// A Flow is what the kernel compares with selectors (struct flowi).
type Flow struct {
	Src, Dst      netip.Addr
	Proto         uint8
	Sport, Dport  uint16 // of ICMP: type and code
	Ifindex, Mark uint32
}

// selects is xfrm_policy_match of the kernel.
func selects(p *xfrm.Policy, f *Flow, d xfrm.Direction) bool {
	s := &p.Selector
	switch {
	case p.Direction != d || p.IfID != 0:
		return false
	case s.Dst.Addr().Is4() != f.Dst.Is4():
		return false
	case f.Mark&s.MarkMask != s.Mark:
		return false
	case !s.Src.Contains(f.Src) || !s.Dst.Contains(f.Dst):
		return false
	case s.Proto != 0 && s.Proto != f.Proto:
		return false
	case (s.Sport^f.Sport)&s.SportMask != 0 || (s.Dport^f.Dport)&s.DportMask != 0:
		return false
	}
	return s.Ifindex == 0 || s.Ifindex == f.Ifindex
}

// Verdict returns what the kernel does with a flow in a direction. Of policies with the same
// priority the older wins, which a list of policies does not show: if they differ, it is spd.Stack.
func Verdict(policies []xfrm.Policy, defaults xfrm.Defaults, f *Flow, d xfrm.Direction) spd.Verdict {
	verdict, found, least := spd.Clear, false, uint32(0)
	if d == xfrm.Out && defaults.BlockOut || d == xfrm.Forward && defaults.BlockForward {
		verdict = spd.Secret
	}
	for i := range policies {
		if policies[i].Sub && selects(&policies[i], f, d) {
			return spd.Stack // the kernel takes it and the best of the others together
		}
	}
	for i := range policies {
		p := &policies[i]
		if !selects(p, f, d) || found && p.Priority > least {
			continue
		}
		v := spd.Clear
		switch {
		case p.Required > 0 && p.Offloaded && !p.Block:
			v = spd.Stack
		case p.Block || p.Required > 0:
			v = spd.Secret
		case p.Templates > 0:
			v = spd.Stack
		}
		if found && p.Priority == least && v != verdict {
			v = spd.Stack
		}
		verdict, found, least = v, true, p.Priority
	}
	return verdict
}

// pick returns one of some values.
func pick[T any](r *rand.Rand, some ...T) T { return some[r.IntN(len(some))] }

// Addresses that random flows and policies have. They are few, so that these meet often.
var addresses = map[bool][]string{
	false: {"192.168.1.10", "192.168.1.77", "192.168.3.4", "10.9.0.1", "10.9.8.7", "198.51.100.9", "198.51.100.200", "203.0.113.1"},
	true:  {"fd00:1::10", "fd00:1::77", "fd00:3::4", "2001:db8:9::1", "2001:db8:9:8::7", "2001:db8:113::1", "2001:db8:200::9"},
}

// RandomAddress returns an address of a family.
func RandomAddress(r *rand.Rand, six bool) netip.Addr {
	return netip.MustParseAddr(pick(r, addresses[six]...))
}

var (
	ports  = []uint16{0, 8, 53, 80, 443, 4500}
	protos = []uint8{0, 1, 6, 17, 58, 132}
)

// RandomPort returns a port that selectors may have.
func RandomPort(r *rand.Rand) uint16 { return pick(r, ports[1:]...) }

func randomPrefix(r *rand.Rand, six bool) netip.Prefix {
	lengths := []int{0, 8, 16, 24, 29, 32}
	if six {
		lengths = []int{0, 16, 32, 48, 64, 128}
	}
	p, err := RandomAddress(r, six).Prefix(pick(r, lengths...))
	if err != nil {
		panic(err) // the lengths fit
	}
	return p
}

// Random returns a few policies. ifindexes are those that they may name.
func Random(r *rand.Rand, ifindexes ...uint32) ([]xfrm.Policy, xfrm.Defaults) {
	policies := make([]xfrm.Policy, 1+r.IntN(8))
	for i := range policies {
		six := r.IntN(3) == 0
		p := xfrm.Policy{
			Selector:  xfrm.Selector{Src: randomPrefix(r, six), Dst: randomPrefix(r, six)},
			Direction: pick(r, xfrm.Out, xfrm.Out, xfrm.Forward, xfrm.In, xfrm.Direction(3), xfrm.Direction(4)),
			Priority:  uint32(r.IntN(5)),
			Index:     uint32(i),
			IfID:      pick[uint32](r, 0, 0, 0, 0, 0, 7),
			Block:     r.IntN(4) == 0,
			Sub:       r.IntN(12) == 0,
		}
		if r.IntN(2) == 0 {
			p.Proto = pick(r, protos...)
		}
		if p.Proto != 0 && r.IntN(2) == 0 {
			p.Dport, p.DportMask = pick(r, ports...), pick[uint16](r, 0xffff, 0xffff, 0xfff0)
			p.Dport &= p.DportMask
		}
		if p.Proto != 0 && r.IntN(4) == 0 {
			p.Sport, p.SportMask = pick(r, ports...), 0xffff
		}
		if r.IntN(6) == 0 {
			p.Ifindex = pick(r, ifindexes...)
		}
		if r.IntN(6) == 0 {
			p.Mark, p.MarkMask = pick[uint32](r, 0, 5), pick[uint32](r, 5, 0xff)
		}
		if !p.Block && r.IntN(3) > 0 {
			p.Templates = 1 + r.IntN(2)
			p.Required = r.IntN(p.Templates + 1)
		}
		p.Offloaded = r.IntN(12) == 0
		policies[i] = p
	}
	return policies, xfrm.Defaults{BlockForward: r.IntN(12) == 0, BlockOut: r.IntN(12) == 0}
}
