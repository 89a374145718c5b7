package resolve

import "weir/pf/ast"

// Filter holds conditions and actions of a rule. Package field's list says which of them
// the dataplane has; internal/oracle/model evaluates all.
type Filter struct {
	ReceivedOn                  ReceivedOn // the interface by which the packet entered the machine
	TOS                         uint8      // the packet's TOS; 0: any
	DSCP                        DSCP       // the upper six bits of it
	Prio                        Prio       // the packet's priority
	MaxPktSize                  uint16     // maximum bytes of the IP packet; 0: any
	Fragment                    bool       // the packet is a fragment; rules see none, so it never matches
	MaxPktRate                  PktRate    // it matches while its packets are no more
	StateLimiter, SourceLimiter Limiting   // it matches while they have room
	Probability                 uint32     // share, in parts of 2^32, of the packets that match otherwise; 0: all
	Once                        bool       // the rule is removed once it has decided a packet
	RTable                      *uint32    // routing table; nil: unchanged
	Divert                      Divert
}

// ReceivedOn is a condition on the interface by which a packet entered. It never matches
// the machine's own packets, not even with any.
type ReceivedOn struct {
	Asked bool
	On    Interface
	Not   bool
}

// A PktRate is a number of packets in so many seconds. 0 packets: any number.
type PktRate struct{ N, Seconds uint32 }

// DSCP is a condition on the code point.
type DSCP struct {
	Asked bool
	N     uint8
}

// Prio is a condition on the priority.
type Prio struct {
	Asked bool
	N     uint8
}

func (r *resolver) lowerFilter(in *ast.Filter) Filter {
	out := Filter{Fragment: in.Fragment.IsValid(), Once: in.Once.IsValid(), Divert: lowerDivert(in.Divert)}
	out.StateLimiter, out.SourceLimiter = r.lowerLimiter(in.StateLimiter, false), r.lowerLimiter(in.SourceLimiter, true)
	if in.ReceivedOn != nil {
		on := *in.ReceivedOn
		on.Not = false
		out.ReceivedOn = ReceivedOn{true, r.lowerInterface(&on), in.ReceivedOn.Not}
	}
	if in.TOS != nil {
		out.TOS = uint8(in.TOS.N)
	}
	if in.DSCP != nil {
		out.DSCP = DSCP{true, uint8(in.DSCP.N)}
	}
	if in.Prio != nil {
		out.Prio = Prio{true, uint8(in.Prio.N)}
	}
	if in.MaxPktSize != nil {
		out.MaxPktSize = uint16(in.MaxPktSize.N)
	}
	if in.MaxPktRate != nil {
		out.MaxPktRate = PktRate{in.MaxPktRate.N, in.MaxPktRate.Seconds}
	}
	if in.Probability != nil {
		out.Probability = in.Probability.N
	}
	if in.RTable != nil {
		out.RTable = &in.RTable.N
	}
	return out
}
