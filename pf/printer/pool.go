package printer

import (
	"fmt"

	"weir/pf/ast"
)

func translations(c *clauses, r *ast.Rule) {
	if a := r.AfTo; a != nil {
		c.add("af-to", a.Family.String())
		pool(c, "from", a.From)
		pool(c, "to", a.To)
	}
	pool(c, "nat-to", r.Nat)
	pool(c, "binat-to", r.Binat)
	pool(c, "rdr-to", r.Rdr)
}

func pool(c *clauses, keyword string, p *ast.Pool) {
	if p == nil {
		return
	}
	c.add(keyword, list(p.Hosts, target))
	if p.Port != nil {
		c.add("port", poolPort(p.Port))
	}
	c.add(p.Type.String())
	if p.Key != nil {
		c.add(name(p.Key.Text))
	}
	c.addIf(p.Sticky, "sticky-address")
	c.addIf(p.StaticPort, "static-port")
	if p.MapE != nil {
		c.add(fmt.Sprintf("map-e-portset %d/%d/%d", p.MapE.Offset, p.MapE.Length, p.MapE.ID))
	}
	c.addIf(p.EndpointIndependent, "endpoint-independent")
	c.addIf(p.PreferIPv6NextHop, "prefer-ipv6-nexthop")
}

// target prints an address of a pool without its weight, as pf does. A network of length
// 0 is printed in digits, an interface and next hop as a pair.
func target(h *ast.Host) string {
	switch {
	case h.Via == "":
		return scoped(h)
	case h.Kind == ast.HostAny:
		return name(h.Via)
	}
	return "(" + name(h.Via) + " " + scoped(h) + ")"
}

// scoped prints an address with its interface, which the rule's on does not say for a
// pool.
func scoped(h *ast.Host) string {
	if h.Zone != "" && h.Kind == ast.HostPrefix && h.Prefix.IsSingleIP() {
		return address(h) + "%" + h.Zone
	}
	return address(h)
}

// routeBefore prints route-to, reply-to or dup-to with interfaces, at FreeBSD's place.
func routeBefore(c *clauses, r *ast.Route) {
	if r != nil && r.Pairs() {
		pool(c, r.Kind.String(), &r.Pool)
	}
}

// routeBehind prints route-to, reply-to or dup-to of OpenBSD, which name addresses only.
func routeBehind(c *clauses, r *ast.Route) {
	if r != nil && !r.Pairs() {
		pool(c, r.Kind.String(), &r.Pool)
	}
}

func poolPort(p *ast.PoolPort) string {
	switch {
	case p.Star:
		return p.Low.Text + ":*"
	case p.Range:
		return fmt.Sprintf("%s:%s", p.Low.Text, p.High.Text)
	}
	return name(p.Low.Text)
}
