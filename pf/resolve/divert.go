package resolve

import (
	"fmt"
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
	case out.Kind == ast.DivertTo && out.Host != nil && in.Direction == ast.Out:
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
	Addr netip.Addr // with DivertTo
}

// DivertsToSocket reports whether the dataplane does what a rule's divert-to or
// divert-reply asks. Sockets
// take TCP and UDP. The connection's state says which socket it has, and no other way is
// chosen for its packets.
func (r *Rule) DivertsToSocket() bool {
	return (r.Divert.Kind == DivertTo || r.Divert.Kind == DivertReply) && (r.Proto == protoTCP || r.Proto == protoUDP) && r.State == KeepState &&
		r.Route == nil && r.Rdr == nil && r.Nat == nil && !r.IfBound
}

// DivertsPackets reports whether the dataplane does what a rule's divert-packet asks. The
// connection's state says which program it has, and no other way is chosen for its packets.
func (r *Rule) DivertsPackets() bool {
	return r.Divert.Kind == DivertPacket && r.State == KeepState && r.Route == nil && r.AfTo == nil
}

// Device returns the name of the tun device by which the program of divert-packet gets its
// packets.
func (d *Divert) Device() string { return fmt.Sprintf("%s%d", DivertDevice, d.Port) }

// DivertDevice is how the names of these devices begin.
const DivertDevice = "divert"

// unenforcedDivert warns about what the dataplane does not do of a rule's divert clause.
func (r *resolver) unenforcedDivert(in *ast.Rule, lowered *Rule) {
	if in.Divert == nil || in.Anchor != nil {
		return
	}
	if lowered.IfBound && lowered.Divert.Kind != DivertPacket {
		lowered.IfBound = false // a socket's connection comes in by one interface
		r.withoutEffect(in.Divert.Span, "the states of a rule with "+divertName(in.Divert)+" are floating, not if-bound")
	}
	if !lowered.DivertsToSocket() && !lowered.DivertsPackets() {
		what, instead := undivertable(lowered)
		r.faults.UnenforcedBut(in.Divert.Span, divertName(in.Divert)+" "+what, instead)
	}
}

// undivertable returns why the dataplane does not divert a rule's packets, and what to write
// instead.
func undivertable(r *Rule) (what, instead string) {
	packets := r.Divert.Kind == DivertPacket
	switch {
	case !packets && r.Proto == 0:
		return "for all protocols", "write proto tcp or proto udp: a socket gets nothing else"
	case !packets && r.Proto != protoTCP && r.Proto != protoUDP:
		return "for other protocols than TCP and UDP", "divert-packet gives a program the packets of any protocol"
	case r.State != KeepState:
		return "without state", "let the rule keep state"
	case r.Route != nil:
		return "beside another route", "leave the route out, or write rtable, which may stand beside it"
	case packets:
		return "beside af-to", "divert the packets on a machine behind this one, where they have the other family"
	case r.AfTo != nil:
		return "beside af-to", "leave af-to out: the socket gets the packets of this family"
	}
	return "beside a translation", "leave the translation out: the socket gets the packets with the addresses that they have"
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

// lowerDivert says what a divert clause does. FreeBSD's divert-to with a port alone gives packets
// to a program.
func lowerDivert(in *ast.Divert) Divert {
	if in == nil {
		return Divert{}
	}
	out := Divert{Kind: [...]DivertKind{
		ast.DivertTo: DivertTo, ast.DivertReply: DivertReply, ast.DivertPacket: DivertPacket,
	}[in.Kind]}
	switch {
	case in.Host != nil:
		out.Addr = in.Host.Prefix.Addr()
	case in.Kind == ast.DivertTo:
		out.Kind = DivertPacket
	}
	if in.Port != nil {
		out.Port = in.Port.Value
	}
	return out
}
