package resolve

import (
	"fmt"
	"strconv"

	"weir/pf/ast"
)

// natLow and natHigh are pf's default range of source ports.
const (
	natLow  = 50001
	natHigh = 65535
)

// poolPort looks the ports of a pool up; nil if there are none.
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
		r.faults.Errorf(resolved.Span, "nothing is translated to port 0")
	}
	return &resolved
}

// pools gives a combination the addresses of its translations that are of its
// family. It reports false if there are none, so that it is left out.
func (r *resolver) pools(out *ast.Rule, l *lists) bool {
	if out.Family == ast.AnyFamily {
		out.Family = max(common(l.nat), common(l.rdr))
	}
	nat, ok := r.pool(out.Nat, l.nat, l.natPort, out, l)
	if !ok {
		return false
	}
	rdr, ok := r.pool(out.Rdr, l.rdr, l.rdrPort, out, l)
	if !ok {
		return false
	}
	out.Nat, out.Rdr = nat, rdr
	if nat != nil {
		natPorts(nat)
	}
	return rdr == nil || r.rdrPorts(rdr, out)
}

// pool gives the part of a pool that fits a combination: one address, or a
// table of them as in pfctl.
func (r *resolver) pool(in *ast.Pool, hosts []ast.Host, port *ast.PoolPort, out *ast.Rule, l *lists) (*ast.Pool, bool) {
	if in == nil {
		return nil, true
	}
	if l.family == ast.AnyFamily && bothFamilies(hosts) {
		r.faults.Errorf(in.Span, "inet or inet6 must be given: the addresses to translate to are of both families")
		return nil, false
	}
	var fitting []ast.Host
	for _, h := range hosts {
		if f := familyOf(&h); f == ast.AnyFamily || f == out.Family {
			fitting = append(fitting, h)
		}
	}
	pool := *in
	pool.Port = port
	switch {
	case len(fitting) == 0:
		l.whySpan, l.why, l.whyNot = in.Span, "this has no address of the rule's family", out.FamilySpan
		return nil, false
	case len(fitting) == 1:
		pool.Hosts = fitting
		pool.RoundRobin = in.RoundRobin || changing(&fitting[0])
		return &pool, true
	}
	for _, h := range fitting {
		if h.Kind != ast.HostPrefix {
			r.faults.Errorf(h.Span, "among several addresses to translate to there can be no table and no interface in parentheses")
			return nil, false
		}
	}
	pool.Hosts, pool.RoundRobin = []ast.Host{r.newTable(fitting)}, true
	return &pool, true
}

// bothFamilies reports whether hosts holds addresses of both families.
func bothFamilies(hosts []ast.Host) bool {
	seen := map[ast.Family]bool{}
	for i := range hosts {
		seen[familyOf(&hosts[i])] = true
	}
	return seen[ast.Inet] && seen[ast.Inet6]
}

// changing reports whether a pool of this one element can have several
// addresses, and so is used round-robin: a table, a group, and an interface
// without :0.
func changing(h *ast.Host) bool {
	switch h.Kind {
	case ast.HostTable:
		return true
	case ast.HostDynamic:
		return !h.NoAlias || groupName(h.Name)
	}
	return false
}

// natPorts leaves a range out that is the default, and writes a range of one
// port as a port.
func natPorts(p *ast.Pool) {
	if p.Port == nil || !p.Port.Range {
		return
	}
	port := *p.Port
	switch {
	case port.Low.Value == natLow && port.High.Value == natHigh:
		p.Port = nil
		return
	case port.Low.Value == port.High.Value:
		port.Range = false
	}
	p.Port = &port
}

// rdrPorts gives low:* the end that the rule's range of ports makes it have.
// It reports false where there are no such ports.
func (r *resolver) rdrPorts(p *ast.Pool, out *ast.Rule) bool {
	if p.Port == nil {
		return true
	}
	port := *p.Port
	if port.Range && port.Low.Value > port.High.Value {
		r.faults.Errorf(port.Span, "the range ends before it begins")
		return false
	}
	if port.Star {
		port.Star = false
		if len(out.To.Ports) == 1 && out.To.Ports[0].Op == ast.PortRange {
			asked := out.To.Ports[0]
			end := int(port.Low.Value) + int(asked.High.Value) - int(asked.Low.Value)
			if end < 0 || end > 65535 {
				r.conflict(port.Span, fmt.Sprintf("the range would end at port %d", end), asked.Span)
				return false
			}
			port.Range = true
			port.High.Value = uint16(end)
			port.High.Text = strconv.Itoa(int(port.High.Value))
		}
	}
	if port.Range && port.High.Value == port.Low.Value {
		port.Range = false
	}
	p.Port = &port
	return true
}
