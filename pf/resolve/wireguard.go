package resolve

import (
	"fmt"
	"net/netip"
	"slices"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// WireGuard is the interface of a tunnel.
type WireGuard struct {
	Name      string
	Port      uint16
	KeyFile   string // of the private key
	Addresses []netip.Prefix
	MTU       uint16 // at most, unless MTUFixed
	MTUFixed  bool   // the statement says so
	Engine    string // kernel or userspace; empty: either
	CopyDSCP  bool   // outer packets have the code point of inner ones
	DSCP      uint8  // else they have this one
	Peers     []Peer
}

// Peer is the other end of a tunnel.
type Peer struct {
	Name      string
	Key       string // public, in base64
	PSKFile   string // of the preshared key; empty: none
	Endpoint  string // address or name, of the first way if there are several; empty: the peer comes from anywhere
	Port      uint16 // of Endpoint
	Ways      []Way  // the preferred one first; none: Endpoint is all there is, and routes decide how it is reached
	Allowed   []netip.Prefix
	Routes    []netip.Prefix // those of Allowed that routes lead to
	Keepalive uint16         // seconds; 0: none
	ShowLoad  bool           // it may ask which cores and links are full here
	// ShowSummary: it may ask what this end is configured as, for it.
	ShowSummary bool
	Wide        uint8 // ports of the link to it, at most; 0: it is not wide
	WideAuto    bool  // of these as many as there are queues and cores for
}

// Way is an endpoint of a peer that has several, or whose uplink is chosen.
type Way struct {
	Endpoint string // address or name
	Port     uint16
	On       string // the interface that packets leave by; empty: routes decide
}

// mostWays is how many ways may lead to a peer.
const mostWays = 8

// What tunnels have unless their statement says so.
const (
	tunnelPort = 51820
	tunnelMTU  = 1420 // 1,500 less the headers of IPv6, UDP and WireGuard
)

// declareTunnels makes the interfaces of the statements known, before there are any.
func (r *resolver) declareTunnels(stmts []ast.Stmt) {
	for _, s := range stmts {
		switch s := s.(type) {
		case *ast.WireGuard:
			r.unknown[s.Name.Text] = true
		case *ast.IKEv2:
			r.unknown[s.Name.Text] = true
		}
	}
}

// wireguard checks the interface of a tunnel and stores it.
func (r *resolver) wireguard(s *ast.WireGuard) {
	if r.scope != r.main {
		r.faults.Errorf(s.Span, "WireGuard interfaces are not defined in an anchor")
		return
	}
	o := WireGuard{Name: s.Name.Text, Port: tunnelPort, KeyFile: textOf(s.Key), MTU: tunnelMTU, Engine: textOf(s.Engine)}
	if s.Port != nil {
		o.Port = uint16(s.Port.N)
	}
	if s.MTU != nil {
		o.MTU, o.MTUFixed = uint16(s.MTU.N), true
	}
	if o.CopyDSCP = s.CopyDSCP; s.DSCP != nil {
		o.DSCP = uint8(s.DSCP.N)
	}
	if o.Engine == "kernel" && (o.CopyDSCP || o.DSCP != 0) {
		r.faults.Errorf(s.Engine.Span, "the kernel's WireGuard clears the code point: leave out the engine, or dscp; rules for its port can set dscp")
	}
	for _, other := range r.ipsec {
		if other.Name.Text == o.Name {
			r.twice(s.Name.Span, "another tunnel has the name "+o.Name, other.Name.Span)
			return
		}
	}
	for i, other := range r.options.WireGuard {
		switch {
		case other.Name == o.Name:
			r.twice(s.Name.Span, "another WireGuard interface has the name "+o.Name, r.tunnels[i].Name.Span)
			return
		case other.Port == o.Port:
			r.twice(s.Span, "two WireGuard interfaces have the same port", r.tunnels[i].Span)
		}
	}
	for i := range s.Addresses {
		r.hostAddress(&s.Addresses[i])
		o.Addresses = append(o.Addresses, s.Addresses[i].Prefix)
	}
	r.options.WireGuard = append(r.options.WireGuard, o)
	r.tunnels = append(r.tunnels, s)
	if !s.NoMSS {
		r.clamp(s.Span, s.Name, uint32(o.MTU))
	}
	printed := *s
	printed.NoMSS = true // the rules are printed
	r.out.Stmts = append(r.out.Stmts, &printed)
}

// twice reports what is there twice.
func (r *resolver) twice(at token.Span, message string, first token.Span) {
	r.faults.Add(diag.Diagnostic{Span: at, Message: message, Related: []diag.Related{{Span: first, Note: "this one"}}})
}

// peer checks the other end of a tunnel and stores it.
func (r *resolver) peer(s *ast.Peer) {
	if r.scope != r.main {
		r.faults.Errorf(s.Span, "peers are not defined in an anchor")
		return
	}
	at := slices.IndexFunc(r.options.WireGuard, func(o WireGuard) bool { return o.Name == s.On.Text })
	if at < 0 {
		r.faults.Errorf(s.On.Span, "no wireguard %s is defined above", s.On.Text)
		return
	}
	tunnel := &r.options.WireGuard[at]
	o := Peer{Name: s.Name.Text, Key: textOf(s.Key), PSKFile: textOf(s.PSK), Port: tunnelPort, ShowLoad: s.ShowLoad, ShowSummary: s.ShowSummary}
	r.ways(tunnel, &o, s.Ways)
	if s.Keepalive != nil {
		o.Keepalive = uint16(s.Keepalive.N)
	}
	r.wide(tunnel, &o, s)
	for i := range s.Allowed {
		r.allow(tunnel, &o, &s.Allowed[i])
		if a := s.Allowed[i].Prefix; !s.NoRoute && !r.tunnels[at].NoRoute && a.Bits() > 0 {
			r.reached(tunnel.Name, &s.Allowed[i])
			o.Routes = append(o.Routes, a)
		}
	}
	for _, other := range r.peers {
		switch {
		case other.On.Text != s.On.Text:
		case other.Name.Text == o.Name:
			r.twice(s.Name.Span, "another peer on "+tunnel.Name+" has the name "+o.Name, other.Name.Span)
		case textOf(other.Key) == o.Key:
			r.twice(s.Key.Span, "another peer on "+tunnel.Name+" has this key", other.Key.Span)
		}
	}
	tunnel.Peers = append(tunnel.Peers, o)
	r.peers = append(r.peers, s)
	r.out.Stmts = append(r.out.Stmts, s)
}

// ways gives a peer the ways that lead to it.
func (r *resolver) ways(tunnel *WireGuard, o *Peer, all []ast.Way) {
	var ways []Way
	for i := range all {
		w := Way{Endpoint: all[i].Host.Text, Port: tunnelPort, On: textOf(all[i].On)}
		if all[i].Port != nil {
			w.Port = uint16(all[i].Port.N)
		}
		r.peerHost(&all[i].Host, true)
		if slices.Contains(ways, w) {
			r.faults.Errorf(all[i].Span, "this endpoint is given twice")
		}
		if w.On == tunnel.Name {
			r.faults.Errorf(all[i].On.Span, "the packets of %s cannot leave by %s itself", tunnel.Name, tunnel.Name)
		}
		ways = append(ways, w)
	}
	switch {
	case len(ways) == 0:
		return
	case len(ways) > mostWays:
		r.faults.Errorf(all[mostWays].Span, "a peer has at most %d endpoints", mostWays)
	case tunnel.Engine == "kernel" && (len(ways) > 1 || ways[0].On != ""):
		r.faults.Errorf(all[0].Span.To(all[len(all)-1].Span), "several endpoints, and on, need engine userspace: the kernel's WireGuard does not choose between uplinks")
	}
	o.Endpoint, o.Port = ways[0].Endpoint, ways[0].Port
	if len(ways) > 1 || ways[0].On != "" {
		o.Ways = ways
	}
}

// wide gives the link to a peer its ports.
func (r *resolver) wide(tunnel *WireGuard, o *Peer, s *ast.Peer) {
	switch {
	case s.WideAuto:
		o.Wide, o.WideAuto = ast.MostPorts, true
	case s.Wide != nil:
		o.Wide = uint8(s.Wide.N)
	default:
		return
	}
	if tunnel.Engine == "kernel" {
		r.faults.Errorf(s.Span, "wide needs engine userspace: the kernel's WireGuard has one port and one key for an interface")
	}
}

// widePorts refuses wide links whose ports are another tunnel's, or beyond the last.
func (r *resolver) widePorts() {
	for _, s := range r.peers {
		at := slices.IndexFunc(r.options.WireGuard, func(o WireGuard) bool { return o.Name == s.On.Text })
		tunnel := &r.options.WireGuard[at]
		p := tunnel.Peers[slices.IndexFunc(tunnel.Peers, func(p Peer) bool { return p.Name == s.Name.Text })]
		last := int(tunnel.Port) + max(int(p.Wide), 1) - 1
		if last > 1<<16-1 {
			r.faults.Errorf(s.Span, "a wide link has the ports %d to %d, and the last port is 65535", tunnel.Port, last)
		}
		for i, other := range r.options.WireGuard {
			if other.Name != tunnel.Name && other.Port > tunnel.Port && int(other.Port) <= last {
				r.twice(s.Span, fmt.Sprintf("a wide link has the ports %d to %d, of which %s has %d", tunnel.Port, last, other.Name, other.Port), r.tunnels[i].Span)
			}
		}
	}
}

// allow gives a network to a peer. It belongs to one peer of the tunnel.
func (r *resolver) allow(tunnel *WireGuard, o *Peer, n *ast.Network) {
	for _, s := range r.peers {
		for _, other := range s.Allowed {
			if s.On.Text == tunnel.Name && other.Prefix == n.Prefix {
				r.twice(n.Span, n.String()+" is the network of another peer on "+tunnel.Name, other.Span)
				return
			}
		}
	}
	if slices.Contains(o.Allowed, n.Prefix) {
		r.faults.Errorf(n.Span, "%s is given twice", n)
		return
	}
	o.Allowed = append(o.Allowed, n.Prefix)
}

// reached refuses a network that a route leads to through another tunnel.
func (r *resolver) reached(tunnel string, n *ast.Network) {
	through := func(name string, routes []netip.Prefix) bool {
		if name == tunnel || !slices.Contains(routes, n.Prefix) {
			return false
		}
		r.faults.Errorf(n.Span, "%s is reached through %s already; no route leaves the routes to you", n, name)
		return true
	}
	for _, other := range r.options.WireGuard {
		for _, p := range other.Peers {
			if through(other.Name, p.Routes) {
				return
			}
		}
	}
	for _, other := range r.options.IKEv2 {
		if through(other.Name, other.Routes) {
			return
		}
	}
}

// endpoints refuses peers whose endpoint would be reached through its own tunnel.
func (r *resolver) endpoints() {
	for _, s := range r.peers {
		at := slices.IndexFunc(r.options.WireGuard, func(o WireGuard) bool { return o.Name == s.On.Text })
		for i := range s.Ways {
			r.outside(&s.Ways[i], &r.options.WireGuard[at])
		}
	}
}

// outside refuses an endpoint that a tunnel has a route for.
func (r *resolver) outside(w *ast.Way, tunnel *WireGuard) {
	a, err := netip.ParseAddr(w.Host.Text)
	if err != nil {
		return
	}
	for _, p := range tunnel.Peers {
		for _, n := range p.Routes {
			if n.Contains(a) {
				r.faults.Errorf(w.Host.Span, "the endpoint %s lies in %s, which is reached through this tunnel; no route leaves the routes to you", a, n)
			}
		}
	}
}
