package parser

import (
	"maps"
	"slices"
	"strconv"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// schedulers are the schedulers of FreeBSD's ALTQ. It reads codelq and prints it as
// codel.
var schedulers = []string{"cbq", "priq", "hfsc", "fairq", "codel", "codelq"}

func isCodel(scheduler string) bool { return scheduler == "codel" || scheduler == "codelq" }

// schedulerOptions are the words in the parentheses of each scheduler. A word that is
// true has a value, or several in parentheses.
var schedulerOptions = map[string]map[string]bool{
	"cbq":  {"default": false, "borrow": false, "red": false, "ecn": false, "rio": false, "codel": false},
	"priq": {"default": false, "red": false, "ecn": false, "rio": false, "codel": false},
	"hfsc": {
		"default": false, "red": false, "ecn": false, "rio": false, "codel": false,
		"linkshare": true, "realtime": true, "upperlimit": true,
	},
	"fairq": {
		"default": false, "red": false, "ecn": false, "rio": false, "codel": false,
		"linkshare": true, "hogs": true, "buckets": true,
	},
	"codel":  {"target": true, "interval": true, "ecn": false},
	"codelq": {"target": true, "interval": true, "ecn": false},
}

// scheduler reads the options in parentheses after a scheduler's name.
func (p *parser) scheduler(q *ast.Queue, name ast.Word) {
	s := &ast.Scheduler{Name: name}
	if p.accept(token.LeftParen) {
		for !p.accept(token.RightParen) {
			s.Options = append(s.Options, p.schedulerOption(s))
			p.accept(token.Comma)
		}
	}
	s.Span = name.Span.To(p.last)
	if first := q.ALTQ.Scheduler; first != nil {
		p.failWith(diag.Diagnostic{
			Span: s.Span, Message: "a queue has one scheduler", Related: []diag.Related{{Span: first.Span}},
		})
	}
	q.ALTQ.Scheduler = s
}

// schedulerOption reads an option of s. One with a value may occur once.
func (p *parser) schedulerOption(s *ast.Scheduler) ast.SchedulerOption {
	words := schedulerOptions[s.Name.Text]
	if !p.is(token.Word) {
		p.expected("an option of a scheduler")
	}
	o := ast.SchedulerOption{Name: ast.Word{Span: p.tok.Span, Text: p.tok.Text}}
	valued, known := words[o.Name.Text]
	if !known {
		p.failWith(diag.Diagnostic{
			Span: o.Name.Span, Message: s.Name.Text + " has no option " + strconv.Quote(o.Name.Text),
			Suggest: diag.Nearest(o.Name.Text, slices.Sorted(maps.Keys(words))),
		})
	}
	for _, before := range s.Options {
		if valued && before.Name.Text == o.Name.Text {
			p.givenTwice(o.Name.Span, before.Name.Span, o.Name.Text)
		}
	}
	p.advance()
	switch {
	case !valued:
	case p.accept(token.LeftParen):
		o.Listed = true
		for !p.accept(token.RightParen) {
			o.Values = append(o.Values, p.name("a value"))
			p.accept(token.Comma)
		}
	default:
		o.Values = append(o.Values, p.name("a value"))
	}
	return o
}
