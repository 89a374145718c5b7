package resolve

import (
	"net/netip"

	"weir/pf/ast"
)

// Collector is a program that hears of the connections of rules with pflow.
type Collector struct {
	To      netip.AddrPort
	Source  netip.Addr // that it is told from; not valid: the kernel chooses
	Version int        // 5, or 10 for IPFIX
}

// pflow stores a collector.
func (r *resolver) pflow(s *ast.PFlow) {
	c := Collector{To: netip.AddrPortFrom(r.gatewayAddress(s.To), s.Number), Version: 5}
	if s.Version.Text == "10" {
		c.Version = 10
	}
	if s.Source.Text != "" {
		c.Source = r.gatewayAddress(s.Source)
	}
	switch {
	case !c.To.Addr().IsValid():
		return
	case s.Number == 0:
		r.faults.Errorf(s.Port.Span, "port 0 is no port of a collector")
	case c.Source.IsValid() && c.Source.Is4() != c.To.Addr().Is4():
		r.faults.Errorf(s.Source.Span, "%s and the collector %s are not of one address family", c.Source, c.To.Addr())
	}
	for _, other := range r.options.Collectors {
		if other.To == c.To {
			r.faults.Errorf(s.Span, "the collector %s is there twice", c.To)
		}
	}
	r.options.Collectors = append(r.options.Collectors, c)
}

// pflowAlone warns about pflow if nobody hears of it.
func (r *resolver) pflowAlone() {
	if r.pflowAt.IsValid() && len(r.options.Collectors) == 0 {
		r.withoutEffect(r.pflowAt, "pflow has no effect without a collector: set pflow to ADDRESS port NUMBER")
	}
}
