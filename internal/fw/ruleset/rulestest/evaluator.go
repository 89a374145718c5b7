package rulestest

import (
	"net/netip"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/fw/reason"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/state"
	"weir/internal/oracle/model"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// MaxMatches is MAX_MATCHES of bpf/config.h.
const MaxMatches = 8

// A Packet is what the rules see of a packet at a crossing.
type Packet struct {
	Direction          ast.Direction // In or Out
	Ifindex            uint32
	Src, Dst           netip.Addr
	Proto              uint8
	SPort, DPort       uint16 // valid for TCP and UDP
	TCPFlags           uint8
	ICMPType, ICMPCode uint8
	Tag                string
	Mark, Keep         uint32 // without weir's own bits; bits that the other crossing has set
}

// A Result is the result of the rules. Rules are numbers in the ruleset's sequence; None
// means no rule.
type Result struct {
	Verdict      reason.Reason // Rule, NoRule, Block or NATAddress
	Rule         int           // the deciding rule
	Matched      []int         // rules that count the packet
	Stop         int           // the quick rule that ended the evaluation
	Tag          string
	Mark         uint32 // mark after the crossing
	SetMark      uint32 // bits of it that the rules set
	KeepState    bool
	AllowOptions bool
	Scrub        resolve.Scrub
	Listed       resolve.Scrub // of FreeBSD's scrub rules
	Nat          *Target
	Rdr          *Target
}

// None means no rule.
const None = -1

// A Target is what a translation changes an address and a port to. For nat-to the ports
// are the range to choose from. For rdr-to, Low is the destination port after it.
type Target struct {
	Addr       netip.Addr
	Low, High  uint16
	StaticPort bool
	Endpoint   bool // endpoint-independent
}

// An Evaluator has the model evaluate rules one after the other.
type Evaluator struct{ model *model.Model }

// NewEvaluator returns an Evaluator whose pools have handed out no address yet. It numbers the
// rules.
func NewEvaluator(rs *resolve.Ruleset, s ruleset.Snapshot) *Evaluator {
	return &Evaluator{model.New(boxOf(&s), numbered(rs), 0)}
}

// Replace puts other rules in force. Pools of rules that stay go on.
func (j *Evaluator) Replace(rs *resolve.Ruleset) { j.model.SetRules(numbered(rs)) }

func numbered(rs *resolve.Ruleset) *resolve.Ruleset {
	for i, r := range rs.Rules {
		r.Nr = i
	}
	return rs
}

// boxOf returns the model's description of a host.
func boxOf(s *ruleset.Snapshot) *model.Box {
	b := &model.Box{}
	for _, i := range s.Interfaces {
		n := model.Interface{Index: i.Index, Name: i.Name, Groups: i.Groups, Loopback: i.Name == "lo"}
		for _, a := range i.Addresses {
			n.Addresses = append(n.Addresses, a.Prefix)
			if a.Deprecated {
				n.Deprecated = append(n.Deprecated, a.Prefix.Addr())
			}
			if !a.Peer.IsValid() {
				continue
			}
			n.Peers = append(n.Peers, a.Peer)
			if a.Deprecated || a.Prefix.Addr().IsLinkLocalUnicast() {
				n.Deprecated = append(n.Deprecated, a.Peer)
			}
		}
		b.Interfaces = append(b.Interfaces, n)
	}
	return b
}

// Evaluate evaluates the rules for a packet (docs/packet-path.md, 5).
func (j *Evaluator) Evaluate(p Packet) Result {
	e := j.model.Evaluate(&model.Question{
		Direction: p.Direction, Interface: p.Ifindex, TCPFlags: p.TCPFlags, ICMPType: p.ICMPType, ICMPCode: p.ICMPCode,
		Tuple: state.Tuple{Src: p.Src, Dst: p.Dst, SPort: p.SPort, DPort: p.DPort, Proto: p.Proto},
		Tag:   p.Tag, Mark: p.Mark, Keep: p.Keep,
	})
	a := Result{Verdict: e.Reason, Rule: None, Stop: None, Tag: e.Tag, Mark: e.Mark.On(p.Mark), SetMark: e.Mark.Mask}
	for _, number := range e.Matched {
		a.Matched = append(a.Matched, int(number-1))
	}
	if e.Stop != nil {
		a.Stop = j.model.Number(e.Stop)
	}
	if e.Rule != nil {
		a.Rule = j.model.Number(e.Rule)
	}
	if a.Verdict == reason.Block {
		return a
	}
	if e.Rule != nil {
		a.KeepState, a.AllowOptions = e.Rule.State == resolve.KeepState, e.Rule.AllowOpts
	}
	a.Scrub, a.Listed = e.Scrub, e.Listed
	if t := e.Nat; t != nil {
		a.Nat = &Target{Addr: t.Addr, Low: t.PortLow, High: max(t.PortLow, t.PortHigh), StaticPort: t.StaticPort, Endpoint: t.EndpointIndependent}
	}
	if t := e.Rdr; t != nil {
		a.Rdr = &Target{Addr: t.Addr, Low: t.Port}
	}
	return a
}

// Diff returns how two results differ, or "" if they are equal.
func Diff(want, got Result) string {
	return cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty())
}
