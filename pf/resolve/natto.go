package resolve

import (
	"weir/pf/ast"
)

// checkTranslations checks where nat-to and similar clauses are used, and with which
// others.
func (r *resolver) checkTranslations(in *ast.Rule) {
	r.translation(in, in.Nat, "nat-to")
	r.translation(in, in.Rdr, "rdr-to")
	r.translation(in, in.Binat, "binat-to")
	if in.AfTo != nil {
		r.afTo(in)
	}
}

// translation checks where one of them is used.
func (r *resolver) translation(in *ast.Rule, p *ast.Pool, name string) {
	if p == nil {
		return
	}
	switch {
	case in.Action == ast.Block || in.Action == ast.Pass && !keepsState(in):
		r.faults.Errorf(p.Span, "%s needs a match rule or a pass rule that keeps state", name)
	case name == "binat-to" && in.Direction != ast.AnyDirection:
		r.faults.Errorf(p.Span, "binat-to needs a rule without in or out: it makes one for each direction")
	case name == "binat-to":
	case in.Direction == ast.AnyDirection:
		r.faults.Errorf(p.Span, "%s needs a rule with a direction, %s", name, map[bool]string{false: "out", true: "in"}[name == "rdr-to"])
	}
}

// keepsState reports whether a rule keeps state, explicitly or because it passes.
func keepsState(in *ast.Rule) bool {
	if in.State != nil {
		return in.State.Keep
	}
	return in.Action == ast.Pass
}

func (r *resolver) afTo(in *ast.Rule) {
	a := in.AfTo
	switch {
	case in.Action != ast.Pass || !keepsState(in):
		r.faults.Errorf(a.Span, "af-to needs a pass rule that keeps state")
	case in.Direction == ast.AnyDirection:
		r.faults.Errorf(a.Span, "af-to needs a rule with a direction, in")
	case in.Route != nil && !in.Route.Pairs():
		r.conflict(in.Route.Span, in.Route.Kind.String()+" with af-to must come before the rule's family, with its interface", a.Span)
	}
	r.unenforced("AfTo", a.Span)
}

// checkRoute checks where route-to, reply-to or dup-to is used.
func (r *resolver) checkRoute(in *ast.Rule) {
	if in.Route == nil {
		return
	}
	kind := in.Route.Kind
	switch {
	case in.Action != ast.Pass && !idleRoute(in):
		r.faults.Errorf(in.Route.Span, "%s is allowed only in pass rules", kind)
	case in.Action == ast.Pass && !keepsState(in) && !in.Route.Pairs():
		r.faults.Errorf(in.Route.Span, "%s needs a rule that keeps state", kind)
	case in.Direction == ast.AnyDirection && kind != ast.DupTo:
		r.faults.Errorf(in.Route.Span, "%s needs a rule with a direction", kind)
	}
}

// idleRoute reports whether a rule's next hops are never used. pfSense also writes them
// in block rules, in FreeBSD's form.
func idleRoute(in *ast.Rule) bool { return in.Action == ast.Block && in.Route.Pairs() }

// binat adds the two rules of a binat-to: nat-to for outgoing packets, and rdr-to for
// packets that arrive for the translated addresses.
func (r *resolver) binat(out *ast.Rule, l *lists, at [listed]int) {
	source, ok := r.binatSource(out)
	if !ok {
		return
	}
	nat, back := *out.Binat, *out.Binat
	nat.StaticPort, nat.Binat, back.Binat = true, true, true
	out.Binat = nil

	outgoing := *out
	outgoing.Direction, outgoing.Nat = ast.Out, &nat
	r.add(&outgoing)

	incoming := *out
	settleTexts(&incoming)
	incoming.Direction, incoming.Rdr = ast.In, &back
	back.Hosts = []ast.Host{source}
	incoming.From, incoming.To = out.To, ast.Endpoint{Hosts: nat.Hosts, Ports: out.From.Ports}
	// As in pfctl, use all elements of the lists from this combination's on.
	r.expand(&incoming, &lists{
		on: from(l.on, at[0]), protos: from(l.protos, at[1]), icmp: from(l.icmp, at[2]),
		from: from(l.to, at[4]), to: nat.Hosts, fromPorts: from(l.toPorts, at[6]), toPorts: from(l.fromPorts, at[5]),
		systems: from(l.systems, at[7]), users: from(l.users, at[8]), groups: from(l.groups, at[9]),
		family: out.Family, familySpan: l.familySpan,
		accept: func(out *ast.Rule, _ [listed]int) bool {
			r.add(out)
			return true
		},
	})
}

// from returns a list from its i-th element on.
func from[T any](list []T, i int) []T { return list[min(i, len(list)):] }

// binatSource checks the two sides of a combination with binat-to, and returns the
// source.
func (r *resolver) binatSource(out *ast.Rule) (source ast.Host, ok bool) {
	pool := out.Binat
	target := pool.Hosts[0]
	switch {
	case len(out.From.Hosts) == 0, out.From.Hosts[0].Kind == ast.HostAny:
		r.faults.Errorf(pool.Span, "binat-to needs a source address: from any cannot be reversed")
		return source, false
	case pool.StaticPort:
		r.faults.Errorf(pool.Span, "binat-to never changes ports; leave static-port out")
		return source, false
	case pool.Port != nil:
		r.faults.Errorf(pool.Port.Span, "binat-to never changes ports; leave port out")
		return source, false
	}
	source = out.From.Hosts[0]
	if !r.binatSide(&source) || !r.binatSide(&target) {
		return source, false
	}
	if source.Kind == ast.HostPrefix && target.Kind == ast.HostPrefix {
		if source.Prefix.Bits() != target.Prefix.Bits() {
			r.faults.Warnf(pool.Span, "the source and its translation have different lengths, /%d and /%d",
				source.Prefix.Bits(), target.Prefix.Bits())
		}
	}
	source.Not = false
	return source, true
}

// binatSide checks one side of binat-to.
func (r *resolver) binatSide(h *ast.Host) bool {
	switch {
	case h.Kind == ast.HostDynamic && changing(h):
		r.faults.Errorf(h.Span, "binat-to takes one address of an interface: (%s:0)", h.Name)
	case h.Kind == ast.HostDynamic:
		return true
	case h.Kind != ast.HostPrefix:
		r.faults.Errorf(h.Span, "binat-to needs an address or network on both sides")
	case h.Prefix.Bits() == 0:
		r.faults.Errorf(h.Span, "binat-to needs a network with a length on both sides")
	default:
		return true
	}
	return false
}
