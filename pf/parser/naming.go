package parser

import (
	"strconv"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// maxLabels is the number of labels that a rule may have, as in FreeBSD.
const maxLabels = 5

// label reads a rule's first or further label.
func (p *parser) label(first **ast.Word, more *[]ast.Word) {
	w := p.word("a label")
	switch {
	case *first == nil:
		*first = &w
	case len(*more) < maxLabels-1:
		*more = append(*more, w)
	default:
		p.faults.Add(diag.Diagnostic{
			Span:    w.Span,
			Message: "a rule has at most " + strconv.Itoa(maxLabels) + " labels",
			Related: []diag.Related{{Span: (*first).Span}},
		})
	}
}

// isIdentifier reports whether a rule's number is here.
func (p *parser) isIdentifier() bool { return p.isWord("ridentifier") || p.isWord("tracker") }

// identifier reads the number that FreeBSD and pfSense give a rule. at is the place of
// its keyword.
func (p *parser) identifier(target **ast.Word, at token.Span) {
	name := p.tok.Text
	p.advance()
	w, n := p.number("the number of a rule", 1<<32-1)
	w.Text = strconv.FormatUint(n, 10)
	last(p, target, at, name, &w)
}

// dummynetRule reads macOS's rule for single packets.
func (p *parser) dummynetRule() ast.Stmt {
	d := &ast.PacketPipe{Rule: ast.Rule{Span: p.tok.Span, Action: ast.Match}}
	d.No = p.acceptWord("no")
	p.advance()
	p.direction(&d.Rule)
	p.logQuick(&d.Log, &d.Rule.Quick)
	p.on(&d.Rule)
	d.Family, d.FamilySpan = p.family()
	p.proto(&d.Rule)
	p.fromTo(&d.Rule)
	if d.Queue = p.acceptWord("queue"); !d.No && (d.Queue || p.acceptWord("pipe")) {
		d.Number, _ = p.number("the number of a pipe or a queue", mostDummynet)
	} else if !d.No {
		p.expected("pipe and its number")
	}
	d.Span = d.Span.To(p.last)
	return d
}

// dummynet reads dnpipe or dnqueue with one number, or two in parentheses. Numbers may be
// 0.
func (p *parser) dummynet(r *ast.Rule) {
	d := &ast.Dummynet{Span: p.tok.Span, Queue: p.isWord("dnqueue")}
	word := p.tok.Text
	p.advance()
	number := func() { w, _ := p.number("the number of a "+word[2:], 1<<16-1); d.Numbers = append(d.Numbers, w) }
	if p.accept(token.LeftParen) {
		number()
		p.accept(token.Comma)
		if !p.is(token.RightParen) {
			number()
		}
		p.expect(token.RightParen, "the numbers of "+word)
	} else {
		number()
	}
	d.Span = d.Span.To(p.last)
	if r.Dummynet != nil {
		p.givenTwice(d.Span, r.Dummynet.Span, "dnpipe or dnqueue")
		return
	}
	r.Dummynet = d
}
