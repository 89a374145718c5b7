package resolve

import "weir/pf/ast"

// Filter is what a rule asks of a packet, or does with it, that only
// internal/oracle/model judges yet; but for Fragment, which the dataplane keeps too.
type Filter struct {
	ReceivedOn  ReceivedOn // where the packet came into the machine
	TOS         uint8      // of the packet; 0: not asked
	Prio        Prio       // of the packet
	MaxPktSize  uint16     // bytes of the IP packet at most; 0: not asked
	Fragment    bool       // the packet is a fragment: none is when the rules see it
	Limited     bool       // max-pkt-rate or a limiter: it matches while packets are few
	Probability uint32     // in parts of 2^32 of the packets that match otherwise; 0: all
	Once        bool       // the rule is gone when it has decided a packet
	RTable      *uint32    // the routing table; nil: as without the rule
	Divert      Divert
}

// ReceivedOn asks for where a packet came in. The machine's own came in nowhere,
// not even by any interface.
type ReceivedOn struct {
	Asked bool
	On    Interface
	Not   bool
}

// Prio asks for a priority.
type Prio struct {
	Asked bool
	N     uint8
}

func (r *resolver) lowerFilter(in *ast.Filter) Filter {
	out := Filter{Fragment: in.Fragment.IsValid(), Once: in.Once.IsValid(), Divert: lowerDivert(in.Divert)}
	out.Limited = in.MaxPktRate != nil || in.StateLimiter != nil || in.SourceLimiter != nil
	if in.ReceivedOn != nil {
		on := *in.ReceivedOn
		on.Not = false
		out.ReceivedOn = ReceivedOn{true, r.lowerInterface(&on), in.ReceivedOn.Not}
	}
	if in.TOS != nil {
		out.TOS = uint8(in.TOS.N)
	}
	if in.Prio != nil {
		out.Prio = Prio{true, uint8(in.Prio.N)}
	}
	if in.MaxPktSize != nil {
		out.MaxPktSize = uint16(in.MaxPktSize.N)
	}
	if in.Probability != nil {
		out.Probability = in.Probability.N
	}
	if in.RTable != nil {
		out.RTable = &in.RTable.N
	}
	return out
}
