package parser

import (
	"weir/pf/ast"
	"weir/pf/token"
)

// on reads the interfaces and routing domains of a rule.
func (p *parser) on(r *ast.Rule) {
	if p.acceptWord("on") {
		p.list(func() { r.On = append(r.On, p.ruleInterface()) })
	}
}

// maxInterfaceName is IFNAMSIZ without the NUL.
const maxInterfaceName = 15

// interfaceName reads the name of an interface or group, with an optional !.
func (p *parser) interfaceName() ast.Interface {
	start := p.tok.Span
	not := p.accept(token.Not)
	return p.interfaceNamed(start, not)
}

func (p *parser) interfaceNamed(start token.Span, not bool) ast.Interface {
	name := p.name("the name of an interface")
	if len(name.Text) > maxInterfaceName {
		p.faults.Errorf(name.Span, "the name of an interface has at most %d characters", maxInterfaceName)
	}
	return ast.Interface{Span: start.To(name.Span), Not: not, Name: name.Text}
}

// mostRDomain is the largest number of a routing domain, as in OpenBSD.
const mostRDomain = 255

// ruleInterface reads an interface of a rule: a name, any or a routing domain, with an
// optional !.
func (p *parser) ruleInterface() ast.Interface {
	start := p.tok.Span
	not := p.accept(token.Not)
	switch {
	case p.acceptWord("any"):
		return ast.Interface{Span: start.To(p.last), Not: not, Name: ast.AnyInterface}
	case p.acceptWord("rdomain"):
		n := p.count("the number of a routing domain", mostRDomain)
		return ast.Interface{Span: start.To(p.last), Not: not, RDomain: n}
	}
	return p.interfaceNamed(start, not)
}
