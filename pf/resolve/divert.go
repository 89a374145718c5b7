package resolve

import (
	"net/netip"

	"weir/pf/ast"
)

// divertName returns the users' word for a divert clause.
func divertName(d *ast.Divert) string {
	return [...]string{
		ast.DivertTo: "divert-to", ast.DivertReply: "divert-reply", ast.DivertPacket: "divert-packet",
	}[d.Kind]
}

// divert resolves where a rule diverts to, and checks that the rule can divert. The
// target's address sets the rule's family if nothing else does. Of several the first
// counts, as with pfctl.
func (r *resolver) divert(in *ast.Rule, l *lists) *ast.Divert {
	if in.Divert == nil || in.Anchor != nil { // an anchor has none; checkAnchor reports it
		return nil
	}
	out := *in.Divert
	switch {
	case in.Action == ast.Match:
		r.faults.Errorf(out.Span, "%s is not allowed in match rules", divertName(&out))
	case out.Kind == ast.DivertTo && in.Direction == ast.Out:
		r.faults.Errorf(out.Span, "divert-to is for incoming packets")
	case out.Kind == ast.DivertReply && in.Direction == ast.In:
		r.faults.Errorf(out.Span, "divert-reply is for outgoing packets")
	}
	if out.Port != nil {
		port := *out.Port
		if r.port(&port) && port.Value == 0 {
			r.faults.Errorf(port.Span, "packets cannot be diverted to port 0")
		}
		out.Port = &port
	}
	if out.Host != nil {
		out.Host = r.divertHost(out.Host, in, l)
	}
	return &out
}

// divertHost returns the address of a host in the rule's family.
func (r *resolver) divertHost(h *ast.Host, in *ast.Rule, l *lists) *ast.Host {
	found := r.hosts([]ast.Host{*h}, poolHost)
	for i := range found {
		f := familyOf(&found[i])
		if l.family == ast.AnyFamily {
			l.family = f
		}
		if f == l.family {
			return &found[i]
		}
	}
	if len(found) > 0 {
		r.conflict(h.Span, "divert-to has no address of the rule's family", in.FamilySpan)
	}
	return h
}

// Divert is where the packets that a rule passes are diverted to.
type Divert struct {
	Kind DivertKind
	Port uint16     // not with DivertReply
	Addr netip.Addr // with DivertTo; invalid if there is only a port
}

// DivertKind is a kind of diversion.
type DivertKind uint8

// Kinds of diversion.
const (
	NoDivert     DivertKind = iota
	DivertTo                // a socket of this machine, for incoming packets
	DivertReply             // the socket bound to the connection's address
	DivertPacket            // a program that receives and sends packets
)

func lowerDivert(in *ast.Divert) Divert {
	if in == nil {
		return Divert{}
	}
	out := Divert{Kind: [...]DivertKind{
		ast.DivertTo: DivertTo, ast.DivertReply: DivertReply, ast.DivertPacket: DivertPacket,
	}[in.Kind]}
	if in.Host != nil {
		out.Addr = in.Host.Prefix.Addr()
	}
	if in.Port != nil {
		out.Port = in.Port.Value
	}
	return out
}
