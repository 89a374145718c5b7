package parser

import (
	"slices"
	"strconv"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// schedulers are those of FreeBSD's ALTQ; it prints codel what it reads as codelq.
var schedulers = []string{"cbq", "priq", "hfsc", "fairq", "codel", "codelq"}

func isCodel(scheduler string) bool { return scheduler == "codel" || scheduler == "codelq" }

// schedulerOptions are the words in the parentheses of schedulers. Behind those
// that are true there is a value, or some in parentheses.
var schedulerOptions = map[string]bool{
	"default": false, "borrow": false, "red": false, "ecn": false, "rio": false, "codel": false, "rmin": false,
	"linkshare": true, "realtime": true, "upperlimit": true, "target": true, "interval": true,
	"buckets": true, "hogs": true,
}

// scheduler reads the options in parentheses behind a scheduler's name.
func (p *parser) scheduler(q *ast.Queue, name ast.Word) {
	s := &ast.Scheduler{Name: name}
	if p.accept(token.LeftParen) {
		for !p.accept(token.RightParen) {
			s.Options = append(s.Options, p.schedulerOption())
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

func (p *parser) schedulerOption() ast.SchedulerOption {
	if !p.is(token.Word) {
		p.expected("an option of a scheduler")
	}
	o := ast.SchedulerOption{Name: ast.Word{Span: p.tok.Span, Text: p.tok.Text}}
	valued, known := schedulerOptions[o.Name.Text]
	if !known {
		words := make([]string, 0, len(schedulerOptions))
		for w := range schedulerOptions {
			words = append(words, w)
		}
		slices.Sort(words)
		p.failWith(diag.Diagnostic{
			Span: o.Name.Span, Message: "a scheduler has no option " + strconv.Quote(o.Name.Text),
			Suggest: diag.Nearest(o.Name.Text, words),
		})
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
