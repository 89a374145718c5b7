package resolve

import (
	"net/netip"
	"slices"

	"weir/pf/ast"
)

// warnLoopback6 warns of a redirect of incoming packets to ::1. Linux drops what comes from
// outside for it; no setting changes that, as route_localnet does for 127.0.0.0/8. It reports
// whether it has warned.
func (r *resolver) warnLoopback6(in *ast.Rule, hosts []ast.Host, l *lists) bool {
	inside := func(on ast.Interface) bool {
		members := r.named(on.Name)
		return !on.Not && len(members) > 0 && members[0].loopback()
	}
	if in.Direction == ast.Out || len(l.on) > 0 && !slices.ContainsFunc(l.on, func(on ast.Interface) bool { return !inside(on) }) {
		return false
	}
	for i := range hosts {
		if h := &hosts[i]; h.Kind == ast.HostPrefix && h.Prefix.Addr() == netip.IPv6Loopback() && h.Prefix.IsSingleIP() {
			r.faults.Warnf(h.Span, "what comes in does not arrive at ::1: Linux drops it there. Redirect to an address of an interface, or use divert-to")
			return true
		}
	}
	return false
}
