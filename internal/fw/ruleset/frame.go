package ruleset

import (
	"slices"

	"weir/pf/ast"
	"weir/pf/resolve"
)

// MACs holds the conditions of an ether rule on both addresses of a frame, the destination
// first: an address must agree with Value in the bits of Mask. A mask without bits is no
// condition.
type MACs struct {
	Value, Mask [2][6]byte
	Not         [2]bool
}

// askFrame adds an ether rule's conditions on the addresses of frames.
func (a *Rule) askFrame(f *resolve.Frame) {
	for i, m := range []*resolve.MAC{&f.To, &f.From} {
		if m.Mask == [6]byte{} && !m.Not {
			continue
		}
		a.MACs.Value[i], a.MACs.Mask[i], a.MACs.Not[i] = m.Addr, m.Mask, m.Not
		a.More |= asksMACs
	}
}

// BridgeLost is Rule.Bridge for an interface that does not exist: the frames are dropped.
const BridgeLost = 1<<16 - 1

// bridge returns the interface that a rule sends frames to.
func (c *compiler) bridge(f *resolve.Frame) uint16 {
	if f.BridgeTo == "" {
		return 0
	}
	for _, i := range c.snapshot.Interfaces {
		if i.Name == f.BridgeTo && i.Index < BridgeLost {
			return uint16(i.Index)
		}
	}
	return BridgeLost
}

// endsEther notes that the evaluation ends behind a quick ether anchor if one of its rules
// decides.
func (c *compiler) endsEther(first, end int) {
	for n := first; n < end; n++ {
		if r := &c.lists[n].Rule; r.Action != ast.Match && !r.Quick {
			c.program.Rules[n].More |= Ends
			c.program.Next[n] = uint32(end)
		}
	}
}

// frames makes what frames need besides the fields of all rules.
func (c *compiler) frames() error {
	p := c.program
	if p.Ethers == 0 {
		return nil
	}
	all := newVector(len(p.Rules))
	for i := range p.Rules {
		all[i/64] |= 1 << (i % 64)
	}
	var err error
	if p.Set.All, err = newClassifier(p, &field{common: all}).class(); err != nil {
		return err
	}
	for _, l := range c.lists[:p.Ethers] {
		p.Set.EtherTables = p.Set.EtherTables || isTable(&l.From.Addr) || isTable(&l.To.Addr)
	}
	p.places = c.etherPlaces(0, p.Ethers)
	return nil
}

// etherPlaces returns where a range of ether rules can match. Those in an anchor match only
// where the anchor does.
func (c *compiler) etherPlaces(first, end int) []span {
	var all []span
	for n := first; n < end; n++ {
		l := c.lists[n]
		if l.IsPast {
			continue
		}
		at := placeOf(&l.Rule)
		spans := at.spans(&c.snapshot)
		if l.Anchor != nil {
			inside := c.etherPlaces(n+1, l.Anchor.End)
			if l.Tag != "" { // it tags what comes in, whatever is in it
				inside = append(inside, smallSpan(0, anyIndex))
			}
			spans = common(spans, inside)
			n = l.Anchor.End - 1
		}
		all = append(all, spans...)
	}
	return join(all)
}

// common returns the numbers that are in spans of both.
func common(a, b []span) []span {
	var both []span
	for _, x := range a {
		for _, y := range b {
			first, last := max(x.first.lo, y.first.lo), min(x.last.lo, y.last.lo)
			if first <= last {
				both = append(both, smallSpan(first, last))
			}
		}
	}
	return both
}

// MeetsFrames reports whether an ether rule can match a frame that comes in by an interface,
// or leaves by it.
func (p *Program) MeetsFrames(ifindex int, out bool) bool {
	at := uint64(ifindex)
	if out {
		at |= 1 << 31
	}
	return slices.ContainsFunc(p.places, func(s span) bool { return s.first.lo <= at && at <= s.last.lo })
}
