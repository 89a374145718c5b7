package printer

import (
	"fmt"
	"strings"

	"weir/pf/ast"
)

// Rule prints a rule without line end. For an anchor it prints the part before the
// braces.
func Rule(r *ast.Rule) string {
	c := clauses{action(r)}
	c.add(direction(r.Direction))
	logs(&c, r.Log)
	c.addIf(r.Quick, "quick")
	c.addIf(len(r.On) > 0, "on", list(r.On, onInterface))
	routeBefore(&c, r.Route)
	c.add(r.Family.String())
	c.addIf(len(r.Protos) > 0, "proto", list(r.Protos, func(p *ast.Proto) string { return name(p.Text) }))
	fromTo(&c, r)
	receivedOn(&c, r.ReceivedOn)
	owners(&c, "user", r.User)
	owners(&c, "group", r.Group)
	flags(&c, r.Flags)
	icmp(&c, r.ICMP)
	conditions(&c, &r.Filter)
	sets(&c, &r.Set)
	limiter(&c, "state", r.StateLimiter)
	limiter(&c, "source", r.SourceLimiter)
	state(&c, r.State)
	probability(&c, r.Probability)
	c.addIf(r.Fragment.IsValid(), "fragment")
	scrub(&c, r.Scrub)
	c.addIf(r.AllowOpts.IsValid(), "allow-opts")
	names(&c, r.Label, r.MoreLabels, r.Identifier)
	c.addIf(r.Once.IsValid(), "once")
	if r.Tag != nil {
		c.add("tag", name(r.Tag.Text))
	}
	if r.Tagged != nil {
		c.addIf(r.Tagged.Not, "!")
		c.add("tagged", name(r.Tagged.Name.Text))
	}
	if r.RTable != nil {
		c.add(fmt.Sprintf("rtable %d", r.RTable.N))
	}
	divert(&c, r.Divert)
	dummynet(&c, r.Dummynet)
	translations(&c, r)
	routeBehind(&c, r.Route)
	return c.String()
}

func action(r *ast.Rule) string {
	if r.Anchor != nil {
		return anchor(r.Anchor)
	}
	if r.Action == ast.Block {
		return "block " + blockReturn(r.Return, r.Family)
	}
	return pick(r.Action == ast.Pass, "pass", "match")
}

// blockReturn prints how a block rule of a family answers. Of the two ICMP codes it
// prints those of the family.
func blockReturn(r *ast.Return, family ast.Family) string {
	switch {
	case r == nil || r.Kind == ast.Drop:
		return "drop"
	case r.Kind == ast.ReturnAll:
		return "return"
	case r.Kind == ast.ReturnRST && r.TTL == 0:
		return "return-rst"
	case r.Kind == ast.ReturnRST:
		return fmt.Sprintf("return-rst(ttl %d)", r.TTL)
	case family == ast.Inet:
		return "return-icmp(" + code(r.Code) + ")"
	case family == ast.Inet6:
		return "return-icmp6(" + code(r.Code6) + ")"
	}
	return "return-icmp(" + code(r.Code) + ", " + code(r.Code6) + ")"
}

func code(n *ast.Number) string {
	if n == nil {
		return "port-unr"
	}
	return name(n.Text)
}

func direction(d ast.Direction) string {
	return [...]string{ast.AnyDirection: "", ast.In: "in", ast.Out: "out"}[d]
}

func logs(c *clauses, l *ast.Log) {
	if l == nil {
		return
	}
	c.add("log")
	var options []string
	for _, o := range []struct {
		is   bool
		name string
	}{{l.All, "all"}, {l.Matches, "matches"}, {l.User, "user"}} {
		if o.is {
			options = append(options, o.name)
		}
	}
	if l.To != nil {
		options = append(options, fmt.Sprintf("to pflog%d", l.To.N))
	}
	c.addIf(len(options) > 0, "("+strings.Join(options, ", ")+")")
}

func onInterface(i *ast.Interface) string {
	if i.Not {
		return "! " + interfaceName(i)
	}
	return interfaceName(i)
}

func interfaceName(i *ast.Interface) string {
	switch {
	case i.RDomain != nil:
		return fmt.Sprintf("rdomain %d", i.RDomain.N)
	case i.Name == ast.AnyInterface:
		return i.Name
	}
	return name(i.Name)
}

func fromTo(c *clauses, r *ast.Rule) {
	if anywhere(&r.From) && anywhere(&r.To) {
		c.add("all")
		return
	}
	c.add("from")
	endpoint(c, &r.From)
	c.add("to")
	endpoint(c, &r.To)
}

// anywhere reports whether an endpoint has no condition.
func anywhere(e *ast.Endpoint) bool {
	return len(e.Ports) == 0 && len(e.OS) == 0 && (len(e.Hosts) == 0 || len(e.Hosts) == 1 && isAny(&e.Hosts[0]))
}

// isAny reports whether every address of the rule's family is meant.
func isAny(h *ast.Host) bool {
	return h.Kind == ast.HostAny || h.Kind == ast.HostPrefix && h.Prefix.Bits() == 0 && !h.Not
}

func endpoint(c *clauses, e *ast.Endpoint) {
	if len(e.Hosts) == 0 {
		c.add("any")
	}
	c.add(list(e.Hosts, Host))
	c.addIf(len(e.Ports) > 0, "port", list(e.Ports, Port))
	c.addIf(len(e.OS) > 0, "os", list(e.OS, func(w *ast.Word) string { return quote(w.Text) }))
}

// Port prints a condition on a port.
func Port(p *ast.Port) string { return compared(p.Op, p.Low.Text, p.High.Text) }

// compared prints a condition on a number or name.
func compared(op ast.PortOp, low, high string) string {
	switch op {
	case ast.PortRange:
		return word(low + ":" + high)
	case ast.PortInside:
		return name(low) + " >< " + name(high)
	case ast.PortOutside:
		return name(low) + " <> " + name(high)
	}
	return [...]string{
		ast.PortEqual: "=", ast.PortNotEqual: "!=", ast.PortLess: "<", ast.PortLessEqual: "<=",
		ast.PortGreater: ">", ast.PortGreaterEqual: ">=",
	}[op] + " " + name(low)
}

func flags(c *clauses, f *ast.Flags) {
	switch {
	case f == nil:
	case f.Mask == 0:
		c.add("flags", "any")
	default:
		c.add("flags", letters(f.Set)+"/"+letters(f.Mask))
	}
}

// letters prints TCP flags in the order of their bits.
func letters(set uint8) string {
	var b strings.Builder
	for i, c := range "FSRPAUEW" {
		if set&(1<<i) != 0 {
			b.WriteRune(c)
		}
	}
	return b.String()
}

func icmp(c *clauses, types []ast.ICMP) {
	if len(types) == 0 {
		return
	}
	keyword := "icmp-type"
	if types[0].Family == ast.Inet6 {
		keyword = "icmp6-type"
	}
	c.add(keyword, list(types, func(t *ast.ICMP) string {
		if t.Code == nil {
			return name(t.Type.Text)
		}
		return name(t.Type.Text) + " code " + name(t.Code.Text)
	}))
}
