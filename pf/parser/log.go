package parser

import (
	"strconv"
	"strings"

	"weir/pf/ast"
	"weir/pf/token"
)

// logQuick reads log and quick, in either order.
func (p *parser) logQuick(log **ast.Log, quick *bool) {
	for {
		at := p.tok.Span
		switch {
		case p.acceptWord("log"):
			l := p.logOptions(at)
			if *log != nil {
				p.givenTwice(at, (*log).Span, "log")
				continue
			}
			*log = l
		case p.acceptWord("quick"):
			if *quick {
				p.faults.Errorf(at, "quick is given twice")
			}
			*quick = true
		default:
			return
		}
	}
}

// logOptions reads the options in parentheses after log.
func (p *parser) logOptions(at token.Span) *ast.Log {
	l := &ast.Log{Span: at}
	if !p.accept(token.LeftParen) {
		return l
	}
	for {
		switch {
		case p.acceptWord("all"):
			l.All = true
		case p.acceptWord("matches"):
			l.Matches = true
		case p.acceptWord("user"), p.acceptWord("group"): // FreeBSD's words for the same
			l.User = true
		case p.acceptWord("to"):
			l.To = p.logInterface()
		default:
			p.expected("all, matches, user or to in log (…)")
		}
		p.comma(token.RightParen)
		if p.accept(token.RightParen) {
			break
		}
	}
	l.Span = at.To(p.last)
	return l
}

// mostPflog is the largest number of an interface to log to.
const mostPflog = 255

// logInterface reads pflogN. It returns nil for pflog0, which is the default.
func (p *parser) logInterface() *ast.Count {
	w := p.name("pflog and a number")
	digits, ok := strings.CutPrefix(w.Text, "pflog")
	n, err := strconv.ParseUint(digits, 10, 32)
	switch {
	case !ok || err != nil:
		p.fail(w.Span, "%q is not pflog and a number", w.Text)
	case n > mostPflog:
		p.fail(w.Span, "the number of a pflog interface is at most %d", mostPflog)
	case n == 0:
		return nil
	}
	return &ast.Count{Span: w.Span, N: uint32(n)}
}
