package resolve

import (
	"net/netip"
	"slices"

	"weir/pf/ast"
)

// Gateway says how a next hop of route-to and reply-to is watched.
type Gateway struct {
	Addr    netip.Addr
	Monitor Monitor
	Target  netip.Addr // that Ping asks: the gateway, or an address behind it
	Kill    bool       // states that lead to it end when it is down
}

// Monitor is a way to watch a gateway.
type Monitor string

// Ways to watch a gateway.
const (
	NoMonitor Monitor = "none" // it counts as up
	ARP       Monitor = "arp"  // by ARP, or by Neighbor Discovery
	Ping      Monitor = "ping" // by ICMP echo requests
)

// GatewayOf returns how a gateway is watched: as set gateway says, or by ARP.
func (o *Options) GatewayOf(a netip.Addr) Gateway {
	at := slices.IndexFunc(o.Gateways, func(g Gateway) bool { return g.Addr == a })
	if at < 0 {
		return Gateway{Addr: a, Monitor: ARP}
	}
	return o.Gateways[at]
}

// gateway stores how a gateway is watched.
func (r *resolver) gateway(s *ast.Gateway) {
	g := Gateway{Addr: r.gatewayAddress(s.Address), Monitor: Monitor(s.Monitor.Text), Kill: s.Kill}
	if !g.Addr.IsValid() {
		return
	}
	if g.Monitor == Ping {
		g.Target = g.Addr
		if s.Target.Text != "" {
			g.Target = r.gatewayAddress(s.Target)
		}
		if g.Target.IsValid() && g.Target.Is4() != g.Addr.Is4() {
			r.faults.Errorf(s.Target.Span, "%s and the gateway %s are not of one address family", g.Target, g.Addr)
		}
	}
	r.options.Gateways = append(slices.DeleteFunc(r.options.Gateways, func(other Gateway) bool { return other.Addr == g.Addr }), g)
}

// gatewayAddress reads an address of one host.
func (r *resolver) gatewayAddress(w ast.Word) netip.Addr {
	a, err := netip.ParseAddr(w.Text)
	if err != nil || a.Zone() != "" || a.Is4In6() || a.IsUnspecified() || a.IsMulticast() {
		r.faults.Errorf(w.Span, "%q is no address of a host", w.Text)
		return netip.Addr{}
	}
	return a
}
