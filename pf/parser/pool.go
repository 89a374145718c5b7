package parser

import (
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// natTo reads nat-to, rdr-to or binat-to into target. keyword is its place.
func (p *parser) natTo(r *ast.Rule, target **ast.Pool, keyword token.Span, name string) {
	pool := p.pool(keyword, name)
	if r.AfTo != nil {
		p.exclude(keyword, name, r.AfTo.Span, "af-to")
		return
	}
	for _, other := range []struct {
		pool *ast.Pool
		name string
	}{{r.Nat, "nat-to"}, {r.Binat, "binat-to"}, {r.Rdr, "rdr-to"}} {
		switch {
		case other.pool == nil:
		case other.name == name:
			p.givenTwice(keyword, other.pool.Span, name)
			return
		case name == "binat-to", other.name == "binat-to":
			p.exclude(keyword, name, other.pool.Span, other.name)
			return
		}
	}
	*target = pool
}

// exclude reports that two options of a rule cannot be combined.
func (p *parser) exclude(at token.Span, name string, first token.Span, other string) {
	p.faults.Add(diag.Diagnostic{
		Span: at, Message: name + " and " + other + " exclude each other", Related: []diag.Related{{Span: first}},
	})
}

// pool reads the addresses from which a translation chooses, and how. keyword is its
// place.
func (p *parser) pool(keyword token.Span, name string) *ast.Pool {
	pool := &ast.Pool{}
	p.poolHosts(pool, name)
	if at := p.tok.Span; p.acceptWord("port") {
		pool.Port = p.poolPort()
		pool.Port.Span = at.To(p.last)
	}
	p.poolOptions(pool)
	pool.Span = keyword.To(p.last)
	return pool
}

func (p *parser) poolHosts(pool *ast.Pool, name string) {
	p.list(func() {
		h := p.host()
		p.weight(&h)
		if h.Not || h.Kind == ast.HostAny {
			p.fail(h.Span, "%s takes an address, not ! or any", name)
		}
		pool.Hosts = append(pool.Hosts, h)
	})
}

func (p *parser) poolPort() *ast.PoolPort {
	w := p.name("a port")
	low, high, isRange := p.splitRange(w)
	switch {
	case !isRange:
		return &ast.PoolPort{Low: ast.Number{Word: w}}
	case high.Text == "*":
		return &ast.PoolPort{Low: low, Star: true}
	}
	return &ast.PoolPort{Low: low, High: high, Range: true}
}

var poolTypes = map[string]ast.PoolType{
	"bitmask": ast.Bitmask, "random": ast.Random, "source-hash": ast.SourceHash,
	"round-robin": ast.RoundRobin, "least-states": ast.LeastStates,
}

// poolWords are pool options that OpenBSD does not know, so they are not keywords.
var poolWords = setOf("endpoint-independent", "prefer-ipv6-nexthop", "map-e-portset")

// poolOptions reads how addresses are chosen from a pool, in any order.
func (p *parser) poolOptions(pool *ast.Pool) {
	for {
		at := p.tok.Span
		kind := ast.NoPoolType
		if p.is(token.Word) {
			kind = poolTypes[p.tok.Text]
		}
		switch {
		case kind != ast.NoPoolType:
			p.advance()
			if pool.Type != ast.NoPoolType {
				p.faults.Errorf(at, "%s: the pool already has the type %s", kind, pool.Type)
			}
			pool.Type = kind
			if kind == ast.SourceHash {
				pool.Key = p.hashKey()
			}
		case p.acceptWord("static-port"):
			p.flag(&pool.StaticPort, at, "static-port")
		case p.acceptWord("sticky-address"):
			p.flag(&pool.Sticky, at, "sticky-address")
		case p.acceptWord("map-e-portset"):
			p.mapE(pool, at)
		case p.acceptWord("endpoint-independent"):
			p.flag(&pool.EndpointIndependent, at, "endpoint-independent")
		case p.acceptWord("prefer-ipv6-nexthop"):
			p.flag(&pool.PreferIPv6NextHop, at, "prefer-ipv6-nexthop")
		default:
			return
		}
	}
}

// flag sets an option that may be given once.
func (p *parser) flag(target *bool, at token.Span, name string) {
	if *target {
		p.faults.Errorf(at, "%s is given twice", name)
	}
	*target = true
}

// hashKey reads the key of source-hash, or returns nil if there is none. The key is all
// words up to the next option, with a blank between them.
func (p *parser) hashKey() *ast.Word {
	var words []string
	start := p.tok.Span
	for p.is(token.String) || p.is(token.Word) && !token.IsKeyword(p.tok.Text) && !isClauseWord(p.tok.Text) && !poolWords[p.tok.Text] {
		words = append(words, p.tok.Text)
		p.advance()
	}
	if words == nil {
		return nil
	}
	return &ast.Word{Span: start.To(p.last), Text: strings.Join(words, " ")}
}

// afTo reads af-to, at keyword.
func (p *parser) afTo(r *ast.Rule, keyword token.Span) {
	a := &ast.AfTo{}
	if a.Family, _ = p.family(); a.Family == ast.AnyFamily {
		p.expected(`"inet" or "inet6" after af-to`)
	}
	from := p.tok.Span
	p.expectWord("from", "af-to "+a.Family.String())
	a.From = p.pool(from, "af-to")
	if to := p.tok.Span; p.acceptWord("to") {
		a.To = p.pool(to, "af-to")
	}
	a.Span = keyword.To(p.last)
	switch {
	case r.AfTo != nil:
		p.givenTwice(keyword, r.AfTo.Span, "af-to")
	case r.Nat != nil:
		p.exclude(keyword, "af-to", r.Nat.Span, "nat-to")
	case r.Binat != nil:
		p.exclude(keyword, "af-to", r.Binat.Span, "binat-to")
	case r.Rdr != nil:
		p.exclude(keyword, "af-to", r.Rdr.Span, "rdr-to")
	default:
		r.AfTo = a
	}
}

var routeKinds = map[string]ast.RouteKind{"route-to": ast.RouteTo, "reply-to": ast.ReplyTo, "dup-to": ast.DupTo}

// route reads route-to, reply-to or dup-to, if one is here. If early is set, it is before
// the rule's family, as in FreeBSD. A word is then an interface.
func (p *parser) route(r *ast.Rule, early bool) bool {
	kind, ok := routeKinds[p.tok.Text]
	if !ok || !p.is(token.Word) {
		return false
	}
	keyword := p.tok.Span
	p.advance()
	route := &ast.Route{Kind: kind}
	inBraces := p.is(token.LeftBrace)
	p.list(func() {
		h := p.nextHop(kind, early)
		p.weight(&h)
		route.Hosts = append(route.Hosts, h)
	})
	if !inBraces {
		p.noPair(kind, route.Hosts)
	}
	p.poolOptions(&route.Pool)
	route.Span = keyword.To(p.last)
	switch {
	case r.Route == nil:
		r.Route = route
	case r.Route.Kind == kind:
		p.givenTwice(keyword, r.Route.Span, kind.String())
	default:
		p.exclude(keyword, kind.String(), r.Route.Span, r.Route.Kind.String())
	}
	return true
}

// noPair refuses an address behind the name of an interface, which lacks its parentheses.
func (p *parser) noPair(kind ast.RouteKind, hosts []ast.Host) {
	if len(hosts) != 1 || !p.is(token.Word) || !isAddress(p.tok.Text) {
		return
	}
	name := hosts[0].Via
	if name == "" {
		name = hosts[0].Name
	}
	if name == "" || isAddress(name) {
		return
	}
	p.failWith(diag.Diagnostic{
		Span:    hosts[0].Span.To(p.tok.Span),
		Message: kind.String() + " takes an interface and an address in parentheses",
		Suggest: "(" + name + " " + p.tok.Text + ")",
	})
}

// nextHop reads a next hop's address, or with an interface: FreeBSD's pair in parentheses, or the
// address@interface of OpenBSD's before 6.9, which is the same.
func (p *parser) nextHop(kind ast.RouteKind, early bool) ast.Host {
	start := p.tok.Span
	if early && p.tok.IsText() && !isAddress(p.tok.Text) && !p.isWord("any") {
		i := p.interfaceName()
		return ast.Host{Span: i.Span, Via: i.Name, Bits: -1}
	}
	if p.is(token.LeftParen) {
		return p.pair(kind)
	}
	via := ""
	if address, name, ok := strings.Cut(p.tok.Text, "@"); ok && p.is(token.Word) && address != "" && name != "" {
		p.tok.Text, via = address, name
	}
	h := p.host()
	if h.Not || h.Kind == ast.HostAny {
		p.fail(start.To(h.Span), "%s takes an address, not ! or any", kind)
	}
	h.Via = via
	return h
}

// pair reads (if), which is the interface's dynamic addresses, or (if host).
func (p *parser) pair(kind ast.RouteKind) ast.Host {
	start := p.tok.Span
	p.advance()
	dynamic := ast.Host{Kind: ast.HostDynamic, Bits: -1}
	name := p.tok
	p.hostName(&dynamic, "the name of an interface")
	if p.accept(token.RightParen) {
		p.bits(&dynamic)
		dynamic.Span = start.To(p.last)
		return dynamic
	}
	h := p.host()
	if h.Not || h.Kind == ast.HostAny {
		p.fail(h.Span, "%s takes an address, not ! or any", kind)
	}
	p.expect(token.RightParen, "the next hop")
	h.Span, h.Via = start.To(p.last), name.Text
	return h
}

// isAddress reports whether a word cannot be the name of an interface: it begins like an
// address, or has a colon as addresses and modifiers have.
func isAddress(s string) bool {
	return s != "" && s[0] >= '0' && s[0] <= '9' || strings.Contains(s, ":")
}
