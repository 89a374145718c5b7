package printer

import "weir/pf/ast"

// ikev2 prints the definition of an IPsec tunnel.
func ikev2(s *ast.IKEv2) string {
	c := clauses{"ikev2", name(s.Name.Text)}
	c.addIf(len(s.Addresses) > 0, "address", list(s.Addresses, network))
	count(&c, "mtu", s.MTU)
	bare(&c, "local", s.Local)
	bare(&c, "peer", s.Peer)
	c.addIf(s.Passive, "passive")
	quoted(&c, "srcid", s.SrcID)
	quoted(&c, "dstid", s.DstID)
	quoted(&c, "psk file", s.PSK)
	quoted(&c, "certificate file", s.Certificate)
	quoted(&c, "key file", s.Key)
	c.addIf(len(s.CAs) > 0, "ca", list(s.CAs, func(w *ast.Word) string { return "file " + quote(w.Text) }))
	c.addIf(len(s.From) > 0, "from", list(s.From, network))
	c.addIf(len(s.To) > 0, "to", list(s.To, network))
	c.addIf(len(s.Networks) > 0, "networks", list(s.Networks, network))
	bare(&c, "proposals", s.Proposals)
	count(&c, "lifetime", s.Lifetime)
	count(&c, "ikelifetime", s.IKELifetime)
	count(&c, "dpd", s.DPD)
	c.addIf(s.NoDPD, "no dpd")
	c.addIf(s.Encap, "encap udp")
	c.addIf(s.PerCPU, "per-cpu")
	c.addIf(s.PerPair, "per-pair")
	c.addIf(s.NoRoute, "no route")
	c.addIf(s.NoMSS, "no max-mss")
	return c.String()
}

func bare(c *clauses, word string, w *ast.Word) {
	if w != nil {
		c.add(word, name(w.Text))
	}
}

func quoted(c *clauses, word string, w *ast.Word) {
	if w != nil {
		c.add(word, quote(w.Text))
	}
}
