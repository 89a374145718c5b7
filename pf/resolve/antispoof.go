package resolve

import (
	"slices"
	"strings"

	"weir/pf/ast"
)

// antispoof expands to the rules in pf.conf(5). They block packets from an interface's
// network that arrive by other interfaces, and packets from the interface's own addresses
// unless it is a loopback.
func (r *resolver) antispoof(a *ast.Antispoof) {
	r.log(a.Log)
	r.unenforcedCount("RTable", a.RTable)
	if r.spoofedRules(a) > r.maxRules-r.total {
		r.faults.Errorf(a.Span, "the configuration expands to more than %d rules here", r.maxRules)
		return
	}
	for i := range a.Interfaces {
		of := &a.Interfaces[i]
		r.known(ast.Word{Span: of.Span, Text: of.Name})
		members := r.named(of.Name)
		if len(members) == 0 && !of.Dynamic {
			if r.isGroup(of.Name) { // else known has warned
				r.faults.Warnf(of.Span, "the group %q is empty now, so antispoof does nothing for it; write (%s) to follow its addresses", of.Name, of.Name)
			}
			continue // pfctl makes no rules in this case
		}
		before := len(r.rules)
		on := []ast.Interface{{Span: of.Span, Name: of.Name, Not: true}}
		r.spoofed(a, of, members, on, true)
		if len(members) == 0 || !members[0].loopback() {
			r.spoofed(a, of, members, nil, false)
		}
		if len(r.rules) == before && !r.faults.HasErrors() {
			r.faults.Warnf(of.Span, "%q has no %saddress now, so antispoof does nothing for it; write (%s) to follow its addresses",
				of.Name, strings.TrimLeft(a.Family.String()+" ", " "), of.Name)
		}
	}
}

// spoofedRules counts the rules of an antispoof. It stops above the limit of rules.
func (r *resolver) spoofedRules(a *ast.Antispoof) (total int) {
	type asked struct {
		name    string
		dynamic bool
	}
	known := make(map[asked]int)
	for i := range a.Interfaces {
		of := &a.Interfaces[i]
		what := asked{of.Name, of.Dynamic}
		n, ok := known[what]
		if !ok {
			members := r.named(of.Name)
			n = len(sources(a, of, members, true))
			if len(members) == 0 || !members[0].loopback() {
				n += len(sources(a, of, members, false))
			}
			known[what] = n
		}
		if total += n; total > r.maxRules {
			break
		}
	}
	return total
}

// spoofed adds the rules against one kind of spoofed sources of an interface.
func (r *resolver) spoofed(a *ast.Antispoof, of *ast.AntispoofInterface, members []*HostInterface, on []ast.Interface, network bool) {
	for _, source := range sources(a, of, members, network) {
		rule := &ast.Rule{
			Span: a.Span, Action: ast.Block, Direction: ast.In, Quick: a.Quick, Log: a.Log,
			On: on, Family: a.Family, Label: a.Label, MoreLabels: a.MoreLabels, Identifier: a.Identifier,
		}
		rule.RTable = a.RTable
		rule.From.Hosts = []ast.Host{source}
		rule.Origin = of.Span
		if r.agree(rule, &lists{}) {
			r.add(rule)
		}
	}
}

// sources returns the addresses or networks of an interface for an antispoof, or one
// dynamic address if the antispoof has the interface in parentheses.
func sources(a *ast.Antispoof, of *ast.AntispoofInterface, members []*HostInterface, network bool) []ast.Host {
	h := ast.Host{Span: of.Span, Kind: ast.HostDynamic, Name: of.Name, Network: network, Bits: -1}
	if of.Dynamic {
		return []ast.Host{h}
	}
	var found []ast.Host
	for _, m := range members {
		found = append(found, addresses(&h, m)...)
	}
	return slices.DeleteFunc(found, func(source ast.Host) bool {
		f := familyOf(&source)
		return f != ast.AnyFamily && a.Family != ast.AnyFamily && f != a.Family
	})
}
