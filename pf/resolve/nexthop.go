package resolve

import (
	"slices"

	"weir/pf/ast"
)

// namedHops turns words before a rule's family into hosts if no interface has the name
// and some host does. The parser takes these words for interfaces.
func (r *resolver) namedHops(p *ast.Pool) *ast.Pool {
	named := *p
	named.Hosts = slices.Clone(p.Hosts)
	for i := range named.Hosts {
		h := &named.Hosts[i]
		if h.Via == "" {
			continue
		}
		if h.Kind == ast.HostAny && r.named(h.Via) == nil && len(r.host.Hosts[h.Via]) > 0 {
			h.Kind, h.Name, h.Via = ast.HostName, h.Via, ""
			continue
		}
		r.known(ast.Word{Span: h.Span, Text: h.Via})
	}
	return &named
}

// linkHops combines several next hops that name a link, fe80::1%em0, with it. A table
// would lose the links, as it does beside addresses without one.
func (r *resolver) linkHops(t *targets) {
	unlinked := func(h ast.Host) bool { return h.Zone == "" || h.Via != "" }
	first := slices.IndexFunc(t.hosts, func(h ast.Host) bool { return !unlinked(h) })
	switch {
	case len(t.hosts) < 2 || first < 0:
	case slices.ContainsFunc(t.hosts, unlinked):
		r.faults.Warnf(t.hosts[first].Span, "the link %%%s is ignored, because other addresses in the list name none", t.hosts[first].Zone)
	default:
		for i := range t.hosts {
			t.hosts[i].Via, t.hosts[i].Zone = t.hosts[i].Zone, ""
		}
	}
}

// checkHops checks which interface addresses the next hops are, and whether several can
// be combined. Several addresses become a table, which cannot hold interfaces.
func (r *resolver) checkHops(t *targets) {
	for i := range t.hosts {
		if first, h := &t.hosts[0], &t.hosts[i]; (h.Via == "") != (first.Via == "") {
			r.conflict(h.Span, "either all next hops in a list name an interface, or none does", first.Span)
			return
		}
		if h := &t.hosts[i]; h.Kind == ast.HostDynamic && h.Via == "" && (!h.Peer || h.NoAlias) {
			r.faults.Errorf(h.Span, "a next hop cannot be an address of this machine; (%s:peer) is the other end of a link", h.Name)
		}
	}
}
