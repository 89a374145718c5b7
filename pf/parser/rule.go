package parser

import (
	"slices"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

var actions = map[string]ast.Action{"pass": ast.Pass, "block": ast.Block, "match": ast.Match}

// rule reads a pass, block or match rule. The clauses up to from and to have a fixed
// order; the options after them may have any order.
func (p *parser) rule() ast.Stmt {
	r := &ast.Rule{Span: p.tok.Span, Action: actions[p.tok.Text]}
	p.advance()
	p.blockReturn(r)
	p.clauses(r)
	r.Span = r.Span.To(p.last)
	return r
}

// clauses reads a rule after its action, or an anchor after its name.
func (p *parser) clauses(r *ast.Rule) {
	p.direction(r)
	p.logQuick(&r.Log, &r.Quick)
	p.on(r)
	if at := p.tok.Span; p.acceptWord("fastroute") {
		p.faults.Warnf(at, "fastroute does nothing, as in FreeBSD")
	}
	p.route(r, true)
	r.Family, r.FamilySpan = p.family()
	p.proto(r)
	p.fromTo(r)
	p.ruleOptions(r)
	slices.Reverse(r.User)
	slices.Reverse(r.Group)
}

func (p *parser) direction(r *ast.Rule) {
	switch {
	case p.acceptWord("in"):
		r.Direction = ast.In
	case p.acceptWord("out"):
		r.Direction = ast.Out
	}
}

func (p *parser) family() (ast.Family, token.Span) {
	at := p.tok.Span
	switch {
	case p.acceptWord("inet"):
		return ast.Inet, at
	case p.acceptWord("inet6"):
		return ast.Inet6, at
	}
	return ast.AnyFamily, token.Span{}
}

func (p *parser) proto(r *ast.Rule) {
	if !p.acceptWord("proto") {
		return
	}
	p.list(func() { r.Protos = append(r.Protos, ast.Proto{Word: p.name("a protocol")}) })
	p.protos = r.Protos
}

// fromTo reads all, or from and to.
func (p *parser) fromTo(r *ast.Rule) {
	if p.acceptWord("all") {
		return
	}
	if p.acceptWord("from") {
		p.endpoint(&r.From, "from")
	}
	p.systems(&r.From)
	if p.acceptWord("to") {
		p.endpoint(&r.To, "to")
		p.noURPF(&r.To)
	}
	p.loosePort(r)
}

// loosePort reads a port without from or to, so that faults in the rule's other words are
// found too.
func (p *parser) loosePort(r *ast.Rule) {
	at := p.tok.Span
	if r.From.Ports != nil || r.To.Ports != nil || !p.acceptWord("port") {
		return
	}
	if r.From.OS != nil {
		p.faults.Errorf(at, "write port before os: from ADDRESS port N os NAME")
	} else {
		p.faults.Errorf(at, "port belongs after from or to: did you mean \"to port\"?")
	}
	p.list(func() { r.To.Ports = append(r.To.Ports, p.port()) })
}

// endpoint reads addresses, ports or both.
func (p *parser) endpoint(e *ast.Endpoint, after string) {
	if !p.isWord("port") {
		if p.is(token.Newline) || p.is(token.EOF) {
			p.expected("an address or port after " + after)
		}
		p.list(func() { e.Hosts = append(e.Hosts, p.ruleHost()) })
	}
	if p.acceptWord("port") {
		p.list(func() { e.Ports = append(e.Ports, p.port()) })
	} else if near := diag.Nearest(p.tok.Text, []string{"port"}); near != "" && p.is(token.Word) && !token.IsKeyword(p.tok.Text) {
		p.failWith(diag.Diagnostic{Span: p.tok.Span, Message: "unexpected word " + p.describe(), Suggest: near})
	}
}

// ruleOptions reads the options of a rule in any order, with optional commas between
// them.
func (p *parser) ruleOptions(r *ast.Rule) {
	for {
		at := p.tok.Span
		switch {
		case p.filterOption(r):
		case p.acceptWord("user"):
			p.owners(&r.User, "user")
		case p.acceptWord("group"):
			p.owners(&r.Group, "group")
		case p.acceptWord("flags"):
			p.flags(r, at)
		case p.isWord("icmp-type"), p.isWord("icmp6-type"):
			p.icmp(r)
		case p.isWord("keep"), p.isWord("modulate"), p.isWord("synproxy"), p.isWord("no"):
			p.state(r)
		case p.acceptWord("allow-opts"):
			r.AllowOpts = at
		case p.acceptWord("label"):
			p.label(&r.Label, &r.MoreLabels)
		case p.isIdentifier():
			p.identifier(&r.Identifier, at)
		case p.isWord("dnpipe"), p.isWord("dnqueue"):
			p.dummynet(r)
		case p.acceptWord("tag"):
			w := p.word("a tag")
			last(p, &r.Tag, at, "tag", &w)
		case p.isWord("tagged"), p.is(token.Not):
			p.tagged(r)
		case p.acceptWord("nat-to"):
			p.natTo(r, &r.Nat, at, "nat-to")
		case p.acceptWord("rdr-to"):
			p.natTo(r, &r.Rdr, at, "rdr-to")
		case p.acceptWord("binat-to"):
			p.natTo(r, &r.Binat, at, "binat-to")
		case p.acceptWord("af-to"):
			p.afTo(r, at)
		case p.route(r, false):
		default:
			return
		}
		p.accept(token.Comma)
	}
}

// once reads the value of an option that may be given once.
func (p *parser) once(target **ast.Word, at token.Span, name string) {
	value := p.word("a " + name)
	if *target != nil {
		p.givenTwice(at, (*target).Span, name)
		return
	}
	*target = &value
}

func (p *parser) givenTwice(at, first token.Span, name string) {
	p.faults.Add(diag.Diagnostic{Span: at, Message: name + " is given twice", Related: []diag.Related{{Span: first}}})
}

// tagged reads tagged, with or without !.
func (p *parser) tagged(r *ast.Rule) {
	start := p.tok.Span
	not := p.accept(token.Not)
	p.expectWord("tagged", "!")
	t := &ast.Tagged{Not: not, Name: p.name("a tag")}
	t.Span = start.To(p.last)
	last(p, &r.Tagged, start, "tagged", t)
}

// unexpected fails at a token that no clause accepts.
func (p *parser) unexpected() {
	if p.is(token.LeftParen) {
		if next := p.peek(); next.Kind == token.Word && isStateWord(next.Text) {
			p.failWith(diag.Diagnostic{Span: p.tok.Span, Message: "unexpected " + p.describe(), Suggest: "keep state ("})
		}
	}
	if !p.is(token.Word) {
		p.fail(p.tok.Span, "unexpected %s", p.describe())
	}
	if isStateWord(p.tok.Text) {
		p.failWith(diag.Diagnostic{
			Span: p.tok.Span, Message: "unexpected word " + p.describe(), Suggest: "keep state (" + p.tok.Text + " …)",
		})
	}
	if slices.Contains(headWords, p.tok.Text) {
		p.fail(p.tok.Span, "%q is out of place: a rule has its action, in or out, log, quick, on, inet or inet6, proto, from and to, then its options", p.tok.Text)
	}
	if token.IsKeyword(p.tok.Text) {
		p.fail(p.tok.Span, "unexpected %s", p.describe())
	}
	p.failWith(diag.Diagnostic{
		Span:    p.tok.Span,
		Message: "unexpected word " + p.describe(),
		Suggest: p.meantClause(p.tok.Text),
	})
}

// clausesOfWords are clauses of more than one word, which are often joined into one.
var clausesOfWords = []string{"keep state", "modulate state", "synproxy state", "no state", "on any"}

// protocolNames are those of the protocols that are often written without proto.
var protocolNames = []string{"tcp", "udp", "icmp", "icmp6", "ipv6-icmp", "sctp", "esp", "ah", "gre"}

// meantClause returns what a word that no clause accepts was probably meant to be. Several
// protocols need a list: a rule has one proto.
func (p *parser) meantClause(word string) string {
	if slices.Contains(protocolNames, word) {
		var before strings.Builder
		for _, proto := range p.protos {
			if proto.Text == word {
				return ""
			}
			before.WriteString(proto.Text + " ")
		}
		if len(p.protos) == 0 {
			return "proto " + word
		}
		return "proto { " + before.String() + word + " }"
	}
	if near := diag.Nearest(word, clauseWords); near != "" {
		return near
	}
	return diag.Nearest(word, clausesOfWords)
}
