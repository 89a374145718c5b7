package printer

import (
	"weir/pf/ast"
)

// wireguard prints the definition of a tunnel's interface.
func wireguard(s *ast.WireGuard) string {
	c := clauses{"wireguard", name(s.Name.Text)}
	count(&c, "port", s.Port)
	if s.Key != nil {
		c.add("key file", quote(s.Key.Text))
	}
	c.addIf(len(s.Addresses) > 0, "address", list(s.Addresses, network))
	count(&c, "mtu", s.MTU)
	if s.Engine != nil {
		c.add("engine", s.Engine.Text)
	}
	c.addIf(s.CopyDSCP, "dscp copy")
	count(&c, "dscp", s.DSCP)
	c.addIf(s.NoRoute, "no route")
	c.addIf(s.NoMSS, "no max-mss")
	return c.String()
}

// peer prints the definition of a tunnel's other end.
func peer(s *ast.Peer) string {
	c := clauses{"peer", name(s.Name.Text), "on", name(s.On.Text)}
	if s.Key != nil {
		c.add("key", quote(s.Key.Text))
	}
	if s.PSK != nil {
		c.add("psk file", quote(s.PSK.Text))
	}
	c.addIf(len(s.Ways) > 0, "endpoint", list(s.Ways, way))
	c.addIf(len(s.Allowed) > 0, "allowed", list(s.Allowed, network))
	count(&c, "keepalive", s.Keepalive)
	c.addIf(s.ShowLoad, "show-load")
	c.addIf(s.ShowSummary, "show-summary")
	c.addIf(s.WideAuto, "wide auto")
	count(&c, "wide", s.Wide)
	c.addIf(s.NoRoute, "no route")
	return c.String()
}

func way(w *ast.Way) string {
	c := clauses{name(w.Host.Text)}
	count(&c, "port", w.Port)
	if w.On != nil {
		c.add("on", name(w.On.Text))
	}
	return c.String()
}

func count(c *clauses, word string, n *ast.Count) {
	if n != nil {
		number(c, word, uint64(n.N), true)
	}
}

func network(n *ast.Network) string { return n.String() }
