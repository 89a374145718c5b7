package resolve

import (
	"weir/pf/ast"
	"weir/pf/printer"
)

// lower converts an expanded rule to the form that is compiled.
func (r *resolver) lower(nr int, in *ast.Rule) *Rule {
	out := &Rule{
		Nr:         nr,
		Pos:        in.Origin.Pos,
		Origin:     in.Origin,
		Stmt:       in.Span,
		Text:       printer.Rule(in),
		Action:     in.Action,
		Answer:     lowerReturn(in.Return),
		Direction:  in.Direction,
		Quick:      in.Quick,
		Log:        in.Log != nil,
		LogAll:     in.Log != nil && in.Log.All,
		LogUser:    in.Log != nil && in.Log.User,
		LogMatches: in.Log != nil && in.Log.Matches,
		Interface:  r.lowerOn(in.On),
		Family:     in.Family,
		From:       lowerEndpoint(&in.From),
		To:         lowerEndpoint(&in.To),
		User:       lowerOwner(in.User),
		Group:      lowerOwner(in.Group),
		ICMP:       lowerICMP(in.ICMP),
		State:      NoState,
		AllowOpts:  in.AllowOpts.IsValid(),
		Nat:        r.lowerPool(in.Nat, in.Family),
		Rdr:        r.lowerPool(in.Rdr, in.Family),
		AfTo:       r.lowerAfTo(in.AfTo),
		Route:      r.lowerRoute(in),
		SetMark:    r.lowerMark(in.Set.Mark),
		Filter:     r.lowerFilter(&in.Filter),
	}
	if m := in.Marked; m != nil {
		out.Marked = Marked{Mark: r.lowerMark(m), Not: m.Not}
	}
	if in.Log != nil && in.Log.To != nil {
		out.LogTo = uint8(in.Log.To.N)
	}
	lowerPriority(in, out)
	lowerScrub(in, out)
	if len(in.Protos) > 0 {
		out.Proto = in.Protos[0].Number
	}
	if len(in.From.OS) > 0 {
		out.OS = in.From.OS[0].Text
	}
	if in.Flags != nil {
		out.Flags = TCPFlags{Set: in.Flags.Set, Mask: in.Flags.Mask}
	}
	if in.Action == ast.Pass && (in.State == nil || in.State.Keep) {
		out.State = KeepState
		out.Limits = lowerLimits(in.State)
		out.Exported = in.State != nil && stateOption(in.State.Options, ast.StatePflow) != nil
		out.IfBound = in.State != nil && stateOption(in.State.Options, ast.StateIfBound) != nil
	}
	if in.Label != nil {
		out.Label = in.Label.Text
	}
	for _, l := range in.MoreLabels {
		out.MoreLabels = append(out.MoreLabels, l.Text)
	}
	if in.Tag != nil {
		out.Tag = in.Tag.Text
	}
	if in.Tagged != nil {
		out.Tagged, out.NotTagged = in.Tagged.Name.Text, in.Tagged.Not
	}
	return out
}

func (r *resolver) lowerOn(on []ast.Interface) Interface {
	if len(on) == 0 {
		return Interface{Any: true}
	}
	return r.lowerInterface(&on[0])
}

// loopbacks is the group of loopback interfaces, and on Linux the name of the only one.
const loopbacks = "lo"

func (r *resolver) lowerInterface(i *ast.Interface) Interface {
	switch {
	case i.RDomain != nil:
		return Interface{Not: i.Not, RDomain: &i.RDomain.N}
	case i.Name == ast.AnyInterface:
		return Interface{Name: loopbacks, Not: !i.Not, Group: true}
	}
	group := r.host.Interface(i.Name) == nil && (r.isGroup(i.Name) || groupName(i.Name))
	return Interface{Name: i.Name, Not: i.Not, Group: group}
}

func lowerEndpoint(e *ast.Endpoint) Endpoint {
	var out Endpoint
	if len(e.Hosts) > 0 {
		out.Addr = lowerHost(&e.Hosts[0])
	}
	if len(e.Ports) > 0 {
		out.Port = lowerPort(&e.Ports[0])
	}
	return out
}

func lowerHost(h *ast.Host) Address {
	switch h.Kind {
	case ast.HostPrefix:
		if h.Prefix.Bits() == 0 && !h.Not {
			return Address{}
		}
		return Address{Kind: PrefixAddress, Not: h.Not, Prefix: h.Prefix}
	case ast.HostTable:
		return Address{Kind: TableAddress, Not: h.Not, Table: h.Name}
	case ast.HostDynamic:
		a := Address{Kind: InterfaceAddress, Not: h.Not, Interface: h.Name, NoAlias: h.NoAlias, Bits: max(h.Bits, 0)}
		switch {
		case h.Network && h.Bits < 0: // otherwise the given length counts
			a.Modifier = NetworkModifier
		case h.Broadcast:
			a.Modifier = BroadcastModifier
		case h.Peer:
			a.Modifier = PeerModifier
		}
		return a
	case ast.HostRange:
		return Address{Kind: RangeAddress, Not: h.Not, Prefix: h.Prefix, Last: h.Last}
	case ast.HostNoRoute:
		return Address{Kind: NoRouteAddress, Not: h.Not}
	case ast.HostURPFFailed:
		return Address{Kind: URPFFailedAddress, Not: h.Not}
	case ast.HostRouteLabel:
		return Address{Kind: RouteAddress, Not: h.Not, Route: h.Name}
	}
	return Address{}
}

func lowerPort(p *ast.Port) PortRange {
	return PortRange{Op: p.Op, Low: p.Low.Value, High: p.High.Value}
}

func lowerOwner(conditions []ast.Owner) Owner {
	if len(conditions) == 0 {
		return Owner{}
	}
	o := &conditions[0]
	return Owner{Op: o.Op, Low: o.Low.Value, High: o.High.Value}
}

func lowerICMP(types []ast.ICMP) ICMPType {
	if len(types) == 0 {
		return ICMPType{}
	}
	t := types[0]
	out := ICMPType{Asked: true, Type: uint8(t.Type.Value)}
	if t.Code != nil {
		out.HasCode, out.Code = true, uint8(t.Code.Value)
	}
	return out
}

func lowerTable(t *ast.Table) *Table {
	return &Table{
		Name: t.Name.Text, Pos: t.Name.Pos, Entries: t.Entries, TableFlags: t.Flags,
		Given: len(t.Sources) > 0, Used: t.Used, Anchor: t.Anchor,
	}
}
