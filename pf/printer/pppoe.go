package printer

import (
	"strconv"

	"weir/pf/ast"
)

// pppoe prints the definition of a PPPoE interface.
func pppoe(s *ast.PPPoE) string {
	c := clauses{"pppoe", name(s.Name.Text), "on", name(s.On.Text)}
	c.add(s.Family.String())
	text := func(word string, w *ast.Word) {
		if w != nil {
			c.add(word, quote(w.Text))
		}
	}
	text("user", s.User)
	text(pick(s.FromEnv, "password env", "password file"), s.Password)
	text("service", s.Service)
	text("ac", s.AC)
	text("host-uniq", s.HostUniq)
	if s.MTU != nil {
		c.add("mtu", strconv.FormatUint(uint64(s.MTU.N), 10))
	}
	if s.Auth != nil {
		c.add("auth", list(s.Auth, func(w *ast.Word) string { return w.Text }))
	}
	if s.Priority != nil {
		c.add("priority", strconv.FormatUint(uint64(s.Priority.N), 10))
	}
	if s.Renew != nil {
		c.add("reconnect at", name(s.Renew.Text))
	}
	if s.DNS != nil {
		c.add("dns", s.DNS.Text)
	}
	c.addIf(s.NoRoute, "no route")
	c.addIf(s.NoMSS, "no max-mss")
	c.addIf(s.NoPass, "no pass")
	if d := s.Prefix; d != nil {
		c.add("prefix")
		if d.Length != nil {
			c.add(strconv.FormatUint(uint64(d.Length.N), 10))
		}
		c.add("to", list(d.To, delegationLink))
	}
	text("script", s.Script)
	return c.String()
}

func delegationLink(l *ast.DelegationLink) string {
	if l.Subnet == nil {
		return name(l.Text)
	}
	return name(l.Text) + " subnet " + strconv.FormatUint(uint64(l.Subnet.N), 10)
}
