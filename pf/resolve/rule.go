package resolve

import (
	"slices"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// lists holds the resolved clauses of a rule that may be lists.
type lists struct {
	on                 []ast.Interface
	protos             []ast.Proto
	icmp               []ast.ICMP
	from, to           []ast.Host
	fromPorts, toPorts []ast.Port
	systems            []ast.Word
	users, groups      []ast.Owner
	pools              pools
	family             ast.Family
	familySpan         token.Span // origin of the family; invalid if it comes from the addresses of from and to

	// accept adds a combination of the elements at, unless it has to be left out.
	accept func(out *ast.Rule, at [listed]int) bool

	accepted int        // number of accepted combinations
	why      string     // why the last combination was left out
	whySpan  token.Span // place of why
	whyNot   token.Span // place of the conflicting part
}

// rule expands a rule into one for each combination of the elements of its lists. As in
// pfctl, it leaves out combinations of different address families.
func (r *resolver) rule(in *ast.Rule) {
	before := r.faults.Errors()
	r.checkOnce(in)
	resolved := *in
	resolved.Anchor = r.body(in.Anchor)
	resolved.Return = r.blockReturn(in)
	resolved.State = r.state(in)
	resolved.Filter = r.filter(in)
	l := r.lists(in)
	resolved.Divert = r.divert(in, l)
	if r.faults.Errors() > before {
		return
	}
	l.accept = func(out *ast.Rule, at [listed]int) bool {
		switch {
		case !r.rdrPorts(out.Rdr, out):
			return false
		case out.Binat != nil:
			r.binat(out, l, at)
		default:
			r.add(out)
		}
		resolved.Anchor = resolved.Anchor.Again()
		return true
	}
	r.expand(&resolved, l)
}

// expand calls accept for each combination of a rule's lists.
func (r *resolver) expand(in *ast.Rule, l *lists) {
	before := r.faults.Errors()
	if len(in.From.Hosts) > len(l.from) && len(l.from) == 0 || len(in.To.Hosts) > len(l.to) && len(l.to) == 0 {
		return // self without an address, which was warned about; no host at all would mean any
	}
	if len(in.User) > 0 && len(l.users) == 0 || len(in.Group) > 0 && len(l.groups) == 0 {
		return // nobody, which was warned about
	}
	sizes := [...]int{
		len(l.on), len(l.protos), len(l.icmp), len(l.from), len(l.to), len(l.fromPorts), len(l.toPorts), len(l.systems),
		len(l.users), len(l.groups),
	}
	total := 1
	for _, n := range sizes {
		if total *= max(n, 1); total > r.maxRules-r.total {
			r.faults.Errorf(in.Span, "the configuration expands to more than %d rules here", r.maxRules)
			return
		}
	}
	for i := range total {
		if r.faults.Full() {
			return
		}
		r.combination(in, l, split(i, sizes))
	}
	if l.accepted == 0 && r.faults.Errors() == before {
		r.noCombination(in, l)
	}
}

// noCombination reports that no combination of a rule is possible, and why.
func (r *resolver) noCombination(in *ast.Rule, l *lists) {
	d := diag.Diagnostic{Span: in.Span, Message: "the rule expands to no valid combination"}
	if l.why != "" {
		d.Span, d.Message = l.whySpan, d.Message+": "+l.why
		if l.whyNot.IsValid() && !l.whyNot.Overlaps(l.whySpan) {
			d.Related = []diag.Related{{Span: l.whyNot}}
		}
	}
	r.faults.Add(d)
}

// listed is the number of lists that expand a rule.
const listed = 10

// split returns the elements of combination i, one for each list. The last list varies
// fastest.
func split(i int, sizes [listed]int) (at [listed]int) {
	for k := len(sizes) - 1; k >= 0; k-- {
		n := max(sizes[k], 1)
		at[k] = i % n
		i /= n
	}
	return at
}

// lists resolves the clauses of a rule.
func (r *resolver) lists(in *ast.Rule) *lists {
	l := &lists{
		on:        in.On,
		protos:    r.protos(in.Protos),
		icmp:      r.icmp(in.ICMP),
		from:      r.hosts(in.From.Hosts, ruleHost),
		to:        r.hosts(in.To.Hosts, ruleHost),
		fromPorts: r.ports(in.From.Ports),
		toPorts:   r.ports(in.To.Ports),
		systems:   r.systemsOf(in),
		users:     r.owners(in.User, "User", r.host.Users),
		groups:    r.owners(in.Group, "Group", r.host.Groups),
		family:    in.Family,
	}
	if in.Flags != nil && in.Flags.Mask != 0 && len(l.protos) > 0 && !slices.ContainsFunc(l.protos, isTCP) {
		r.conflict(in.Flags.Span, "flags need proto tcp", l.protos[0].Span)
	}
	l.from, l.to = anyOf(l.from), anyOf(l.to)
	for i := range in.On {
		r.onInterface(&in.On[i])
	}
	l.familySpan = in.FamilySpan
	if l.family == ast.AnyFamily {
		l.family = common(l.from)
	}
	if l.family == ast.AnyFamily {
		l.family = common(l.to)
	}
	r.pools(in, l)
	return l
}

func isTCP(p ast.Proto) bool { return p.Number == protoTCP }

// common returns the family of all addresses in a list, or none if one address has none.
func common(hosts []ast.Host) ast.Family {
	if len(hosts) == 0 {
		return ast.AnyFamily
	}
	family := familyOf(&hosts[0])
	for i := range hosts {
		if familyOf(&hosts[i]) != family {
			return ast.AnyFamily
		}
	}
	return family
}

// familyOf returns the family of an address. Tables and dynamic addresses have none.
func familyOf(h *ast.Host) ast.Family {
	if h.Kind != ast.HostPrefix && h.Kind != ast.HostRange {
		return ast.AnyFamily
	}
	return ast.Of(h.Prefix.Addr())
}

// anyOf reduces a list to any if one of its addresses is any, as in pf.
func anyOf(hosts []ast.Host) []ast.Host {
	for i := range hosts {
		if hosts[i].Kind == ast.HostAny {
			return hosts[i : i+1 : i+1]
		}
	}
	return hosts
}

// combination adds the rule of one combination, unless it is left out.
func (r *resolver) combination(in *ast.Rule, l *lists, at [listed]int) {
	out := *in
	out.Origin = in.Span
	out.On = one(l.on, at[0], &out.Origin)
	out.Protos = one(l.protos, at[1], &out.Origin)
	out.ICMP = one(l.icmp, at[2], &out.Origin)
	out.From.Hosts = one(l.from, at[3], &out.Origin)
	out.To.Hosts = one(l.to, at[4], &out.Origin)
	out.From.Ports = one(l.fromPorts, at[5], &out.Origin)
	out.To.Ports = one(l.toPorts, at[6], &out.Origin)
	out.From.OS = one(l.systems, at[7], &out.Origin)
	out.User = one(l.users, at[8], &out.Origin)
	out.Group = one(l.groups, at[9], &out.Origin)
	out.Family = l.family
	dropAny(&out.From)
	dropAny(&out.To)
	if len(out.From.OS) > 0 && len(out.Protos) > 0 && !isTCP(out.Protos[0]) {
		return // only TCP packets show the sender's system
	}
	r.choose(&out, l) // pfctl also makes the tables of combinations that it leaves out
	if r.agree(&out, l) && l.accept(&out, at) {
		l.accepted++
	}
}

// dropAny clears an endpoint that is any, which is shorter and means the same.
func dropAny(e *ast.Endpoint) {
	if len(e.Hosts) == 1 && e.Hosts[0].Kind == ast.HostAny && !e.Hosts[0].Not {
		e.Hosts = nil
	}
}

// add completes a rule whose lists have one element each, checks it, and appends it to
// the configuration.
func (r *resolver) add(out *ast.Rule) {
	if r.total >= r.maxRules {
		r.faults.Errorf(out.Span, "the configuration expands to more than %d rules here", r.maxRules)
		return
	}
	if !out.Origin.IsValid() {
		out.Origin = out.Span
	}
	fitBits(out)
	r.fill(out)
	r.sctpPorts(out, out.Rdr)
	if out.Dummynet != nil && !r.without.Queues {
		r.useDummynet(out)
	}
	if r.consistent(out) && r.texts(out) {
		r.rules = append(r.rules, out)
		r.total++
	}
}

// one returns the i-th element of a list as a list. If the list has several, origin is
// set to the element's place.
func one[T interface{ Whole() token.Span }](list []T, i int, origin *token.Span) []T {
	if len(list) == 0 {
		return nil
	}
	if len(list) > 1 {
		*origin = list[i].Whole()
	}
	return list[i : i+1 : i+1]
}

// agree settles the family and interface of a combination. It reports whether its
// addresses belong to them.
func (r *resolver) agree(out *ast.Rule, l *lists) bool {
	settled := l.familySpan // where the family comes from
	for _, hosts := range [][]ast.Host{out.From.Hosts, out.To.Hosts} {
		if len(hosts) == 0 {
			continue
		}
		h := &hosts[0]
		f := familyOf(h)
		if f != ast.AnyFamily && out.Family != ast.AnyFamily && f != out.Family {
			l.whySpan, l.why, l.whyNot = h.Span, "this is of another address family than the rest of the rule", settled
			return false
		}
		if out.Family = max(out.Family, f); f != ast.AnyFamily && !settled.IsValid() {
			settled = h.Span
		}
		if h.Zone == "" {
			continue
		}
		if len(out.On) == 0 {
			out.On = []ast.Interface{{Span: h.Span, Name: h.Zone}}
		} else if out.On[0].Name != h.Zone {
			l.whySpan, l.why, l.whyNot = h.Span, "this is an address on the link of "+h.Zone, out.On[0].Span
			return false
		}
	}
	return true
}

// fitBits drops the length of (if)/bits if the rule's family does not have such lengths.
func fitBits(out *ast.Rule) {
	for _, hosts := range []*[]ast.Host{&out.From.Hosts, &out.To.Hosts} {
		if len(*hosts) == 0 {
			continue
		}
		h := (*hosts)[0]
		limit := 128
		if out.Family == ast.Inet {
			limit = 32
		}
		if h.Kind == ast.HostDynamic && h.Bits >= limit {
			h.Bits = -1
			*hosts = []ast.Host{h}
		}
	}
}

// fill adds what a rule implies: pass rules keep state, and for TCP they require flags
// S/SA.
func (r *resolver) fill(out *ast.Rule) {
	keeps := out.Action == ast.Pass && (out.State == nil || out.State.Keep)
	tcp := len(out.Protos) == 0 || out.Protos[0].Number == protoTCP
	if !tcp {
		out.State = plainState(out.State)
	}
	switch {
	case !tcp, out.Fragment.IsValid() && (out.Flags == nil || out.Flags.Mask == 0):
		out.Flags = nil
	case out.Flags == nil && keeps:
		out.Flags = &ast.Flags{Set: flagSYN, Mask: flagSYN | flagACK, Implied: true}
	case out.Flags != nil && out.Flags.Mask == 0 && !keeps:
		out.Flags = nil
	}
}

const (
	protoICMP  = 1
	protoTCP   = 6
	protoUDP   = 17
	protoICMP6 = 58

	flagSYN = 1 << 1
	flagACK = 1 << 4
)
