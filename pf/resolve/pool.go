package resolve

import (
	"fmt"
	"slices"
	"strconv"

	"weir/pf/ast"
)

// natLow and natHigh are pf's default range of source ports.
const (
	natLow  = 50001
	natHigh = 65535
)

// pools are the pools of a rule. A missing one is nil.
type pools struct {
	rdr, nat, route *targets
}

// targets is a pool with the addresses that its rule can use.
type targets struct {
	pool  ast.Pool // without Hosts
	hosts []ast.Host
	table []ast.TableEntry // the hosts as table entries, if there are several
	name  string           // keyword
	rdr   bool             // it replaces the destination
	hops  bool             // it contains next hops

	byFamily map[ast.Family][]ast.Host // matching hosts of a translation rule
}

// pools resolves the pools of a rule. They settle the rule's family, in pfctl's order.
func (r *resolver) pools(in *ast.Rule, l *lists) {
	p := &l.pools
	if a := in.AfTo; a != nil {
		r.afToPools(a, l)
	} else {
		p.rdr = r.targets(in.Rdr, "rdr-to")
		p.nat = r.targets(in.Nat, "nat-to")
		if in.Binat != nil {
			p.nat = r.targets(in.Binat, "binat-to")
		}
	}
	if in.Route != nil {
		p.route = r.targets(r.namedHops(&in.Route.Pool), in.Route.Kind.String())
		p.route.hops = true
		r.checkHops(p.route)
	}
	for _, t := range []*targets{p.rdr, p.nat, p.route} {
		if t == nil {
			continue
		}
		t.rdr = t == p.rdr
		if in.AfTo == nil {
			r.settleFamily(t, l)
		}
		if t.rdr && in.AfTo == nil {
			r.warnLoopback6(in, t.hosts, l)
		}
		if t.hops {
			r.linkHops(t)
		}
		r.checkPool(t)
	}
}

// targets resolves the addresses, ports and key of a pool.
func (r *resolver) targets(p *ast.Pool, name string) *targets {
	if p == nil {
		return nil
	}
	r.weightsLost(p.Hosts)
	t := &targets{pool: *p, name: name, hosts: r.hosts(p.Hosts, poolHost)}
	t.pool.Hosts, t.pool.Port = nil, r.poolPort(p)
	if p.Type == ast.SourceHash {
		t.pool.Key = r.hashKey(p)
	}
	return t
}

// afToPools resolves the pools of af-to. Their addresses have the family in which packets
// leave. Packets arrive in the other family.
func (r *resolver) afToPools(a *ast.AfTo, l *lists) {
	l.pools.rdr = r.targets(a.To, "af-to")
	l.pools.nat = r.targets(a.From, "af-to")
	for _, t := range []*targets{l.pools.rdr, l.pools.nat} {
		if t == nil {
			continue
		}
		for i := range t.hosts {
			if f := familyOf(&t.hosts[i]); f != ast.AnyFamily && f != a.Family {
				r.faults.Errorf(t.hosts[i].Span, "af-to %s takes addresses of %s", a.Family, a.Family)
			}
		}
	}
	switch l.family {
	case ast.AnyFamily:
		l.family, l.familySpan = otherFamily(a.Family), a.Span
	case a.Family:
		r.conflict(a.Span, fmt.Sprintf("af-to %s needs a rule of %s", a.Family, otherFamily(a.Family)), l.familySpan)
	}
}

// otherFamily returns the other family.
func otherFamily(f ast.Family) ast.Family {
	if f == ast.Inet {
		return ast.Inet6
	}
	return ast.Inet
}

// settleFamily keeps a pool's addresses of the rule's family. A rule without a family
// gets that of the pool.
func (r *resolver) settleFamily(t *targets, l *lists) {
	if t.hops && t.pool.PreferIPv6NextHop {
		r.settlePreferred(t, l)
		return
	}
	family, at := l.family, l.familySpan
	var fitting []ast.Host
	for _, h := range t.hosts {
		f := familyOf(&h)
		switch {
		case f == ast.AnyFamily || f == family:
		case l.family != ast.AnyFamily:
			continue
		case family != ast.AnyFamily:
			r.faults.Errorf(t.pool.Span, "inet or inet6 is missing: the translation has addresses of both families")
			return
		default:
			family, at = f, t.pool.Span
		}
		fitting = append(fitting, h)
	}
	if len(fitting) == 0 && len(t.hosts) > 0 {
		r.conflict(t.pool.Span, fmt.Sprintf("%s has no address of the rule's family, %s", t.name, family), at)
	}
	t.hosts, l.family, l.familySpan = fitting, family, at
}

// settlePreferred keeps the next hops that a rule with prefer-ipv6-nexthop can use: IPv4
// packets take those of both families. As in FreeBSD they do not settle the rule's family.
func (r *resolver) settlePreferred(t *targets, l *lists) {
	if l.family != ast.Inet6 {
		return
	}
	all := len(t.hosts)
	t.hosts = slices.DeleteFunc(t.hosts, func(h ast.Host) bool { return familyOf(&h) == ast.Inet })
	if len(t.hosts) == 0 && all > 0 {
		r.conflict(t.pool.Span, t.name+" has no address of the rule's family, inet6", l.familySpan)
	}
}

// checkPool checks that a pool's type suits its addresses. A pool of several addresses
// without a type becomes round-robin.
func (r *resolver) checkPool(t *targets) {
	if len(t.hosts) == 0 {
		return // an error has been reported
	}
	p := &t.pool
	several := len(t.hosts) > 1 || changing(&t.hosts[0])
	if p.Type == ast.NoPoolType && several {
		p.Type = ast.RoundRobin
	}
	for i := range t.hosts {
		if h := &t.hosts[i]; len(t.hosts) > 1 && h.Kind != ast.HostPrefix && h.Via == "" {
			r.faults.Errorf(h.Span, "a pool's list contains only addresses and networks")
		}
	}
	if p.Type == ast.Bitmask && several {
		r.faults.Errorf(p.Span, "bitmask takes one network, not several addresses")
	}
	switch {
	case p.StaticPort && (t.rdr || t.hops):
		r.faults.Errorf(p.Span, "static-port is allowed only after nat-to")
	case p.StaticPort && p.MapE != nil:
		r.faults.Errorf(p.MapE.Span, "map-e-portset excludes static-port and a port")
	case p.StaticPort:
		r.staticPort(p)
	case p.EndpointIndependent && (t.rdr || t.hops):
		r.faults.Errorf(p.Span, "endpoint-independent is allowed only after nat-to")
	case p.MapE != nil && (t.rdr || t.hops):
		r.faults.Errorf(p.MapE.Span, "map-e-portset is allowed only after nat-to")
	case p.MapE != nil && p.Port != nil:
		r.faults.Errorf(p.MapE.Span, "map-e-portset excludes static-port and a port")
	case p.PreferIPv6NextHop && !t.hops:
		r.faults.Errorf(p.Span, "prefer-ipv6-nexthop is allowed only after route-to, reply-to and dup-to")
	}
	if !t.rdr {
		natPorts(p)
	}
	r.unenforcedPool(t)
}

// unenforcedPool warns if the dataplane does not support the pool's type, and reports
// whether it did.
func (r *resolver) unenforcedPool(t *targets) (said bool) {
	if h := tooHeavy(t); h != nil {
		r.faults.UnenforcedBut(h.Span, lostWeight, smallerWeights)
		said = true
	}
	if t.hops && t.pool.PreferIPv6NextHop && t.pool.Type == ast.Bitmask {
		r.faults.UnenforcedBut(t.pool.Span, "prefer-ipv6-nexthop with bitmask", "write random")
		said = true
	}
	return said
}

// tooHeavy returns the first address whose weight is ignored, or nil. With one address
// weights do not matter.
func tooHeavy(t *targets) *ast.Host {
	if len(t.hosts) < 2 || t.pool.Type != ast.RoundRobin || weighable(t.hosts) {
		return nil // other types ignore weights
	}
	for i := range t.hosts {
		if t.hosts[i].Weight > 0 {
			return &t.hosts[i]
		}
	}
	return nil
}

// fixed reports whether a pool of this one element has at most one address.
func fixed(h *ast.Host) bool {
	switch h.Kind {
	case ast.HostPrefix:
		return h.Prefix.IsSingleIP()
	case ast.HostDynamic:
		return !changing(h) && h.Bits < 0 && !h.Network
	}
	return false
}

// poolPort looks up the ports of a pool. It returns nil if there are none.
func (r *resolver) poolPort(p *ast.Pool) *ast.PoolPort {
	if p.Port == nil {
		return nil
	}
	resolved := *p.Port
	ok := r.port(&resolved.Low)
	if resolved.Range {
		ok = r.port(&resolved.High) && ok
	}
	if ok && (resolved.Low.Value == 0 || resolved.Range && resolved.High.Value == 0) {
		r.faults.Errorf(resolved.Span, "packets cannot be translated to port 0")
	}
	return &resolved
}

// choose sets the pools of a combination. As in pfctl, several addresses become a table,
// one table for each combination. FreeBSD's pairs stay a list, because a table cannot
// hold interfaces.
func (r *resolver) choose(out *ast.Rule, l *lists) {
	if l.pools == (pools{}) {
		return
	}
	rdr, nat, route := r.pool(l.pools.rdr), r.pool(l.pools.nat), r.pool(l.pools.route)
	switch {
	case out.AfTo != nil:
		a := *out.AfTo
		a.From, a.To = nat, rdr
		out.AfTo = &a
	case out.Binat != nil:
		out.Binat = nat
	default:
		out.Nat, out.Rdr = nat, rdr
	}
	if route != nil {
		out.Route = &ast.Route{Kind: out.Route.Kind, Pool: *route}
	}
}

// pool returns a pool for one combination.
func (r *resolver) pool(t *targets) *ast.Pool {
	if t == nil {
		return nil
	}
	p := t.pool
	p.Hosts = t.hosts
	if len(t.hosts) > 1 && t.hosts[0].Via == "" {
		p.Hosts = []ast.Host{r.listTable(t)}
	}
	return &p
}

// maxListed limits the addresses in all tables made from the lists of pools.
const maxListed = 1 << 22

// listTable makes the table of a list. All tables of the list share the addresses.
func (r *resolver) listTable(t *targets) ast.Host {
	if t.table == nil {
		t.table = slices.Clip(entries(t.hosts))
	}
	if r.listed += len(t.hosts); r.listed > maxListed {
		r.faults.Errorf(t.pool.Span, "the lists to choose from become tables of more than %d addresses here", maxListed)
		return t.hosts[0]
	}
	return r.newTable(t.hosts, t.table)
}

// changing reports whether a pool of this one element can have several addresses, and is
// therefore round-robin: a table, a group, or an interface without :0.
func changing(h *ast.Host) bool {
	switch h.Kind {
	case ast.HostTable:
		return true
	case ast.HostDynamic:
		return !h.NoAlias || groupName(h.Name)
	}
	return false
}

// staticPort removes a range of ports before static-port. As in pf, a range that begins or ends
// as the default one does is allowed, and has no effect.
func (r *resolver) staticPort(p *ast.Pool) {
	port := p.Port
	switch {
	case port == nil || defaultPorts(port):
	case port.Range && (port.Low.Value == natLow || port.High.Value == natHigh):
		r.faults.Warnf(port.Span, "the ports have no effect: static-port keeps each source's port")
	default:
		r.faults.Errorf(port.Span, "static-port and a port exclude each other")
		return
	}
	p.Port = nil
}

// defaultPorts reports whether a range of ports is nat-to's default.
func defaultPorts(p *ast.PoolPort) bool {
	return p.Range && p.Low.Value == natLow && p.High.Value == natHigh
}

// natPorts removes a range that is the default, and writes a range of one port as a port.
// As in pf, low:* is the single port low here.
func natPorts(p *ast.Pool) {
	if p.Port == nil {
		return
	}
	port := *p.Port
	port.Star = false
	switch {
	case defaultPorts(&port):
		p.Port = nil
		return
	case port.Low.Value == port.High.Value:
		port.Range = false
	}
	p.Port = &port
}

// rdrPorts replaces the end of low:* by the one that the rule's range of ports implies.
// It returns false if there are no such ports.
func (r *resolver) rdrPorts(p *ast.Pool, out *ast.Rule) bool {
	if p == nil || p.Port == nil {
		return true
	}
	port := *p.Port
	if port.Range && port.Low.Value > port.High.Value {
		r.faults.Errorf(port.Span, "the range ends before it begins")
		return false
	}
	if port.Star && !r.starPort(&port, out) {
		return false
	}
	if port.Range && port.High.Value == port.Low.Value {
		port.Range = false
	}
	p.Port = &port
	return true
}

// starPort makes low:* a range as long as the rule's.
func (r *resolver) starPort(port *ast.PoolPort, out *ast.Rule) bool {
	port.Star = false
	if len(out.To.Ports) != 1 || out.To.Ports[0].Op != ast.PortRange {
		return true
	}
	asked := out.To.Ports[0]
	end := int(port.Low.Value) + int(asked.High.Value) - int(asked.Low.Value)
	if end > 65535 {
		r.conflict(port.Span, fmt.Sprintf("the range would end at port %d", end), asked.Span)
		return false
	}
	port.Range = true
	port.High = ast.Number{Word: ast.Word{Span: port.Span, Text: strconv.Itoa(end)}, Value: uint16(end)}
	return true
}
