package parser

import (
	"strconv"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// Limits of limiters, as in pfctl.
const (
	maxLimiterName   = 15
	maxLimiterID     = 255
	maxLimiterStates = 1 << 24
)

// limiterDef reads the definition of a state limiter or a source limiter.
func (p *parser) limiterDef() ast.Stmt {
	l := &ast.LimiterDef{Span: p.tok.Span, Source: p.isWord("source")}
	kind := p.tok.Text
	p.advance()
	p.expectWord("limiter", kind)
	l.Name = p.name("the name of a limiter")
	if len(l.Name.Text) > maxLimiterName {
		p.faults.Errorf(l.Name.Span, "the name of a limiter has at most %d characters", maxLimiterName)
	}
	said := map[string]token.Span{}
	for p.accept(token.Comma) || p.is(token.Word) {
		word, at := p.tok.Text, p.tok.Span
		if first, again := said[word]; again {
			p.givenTwice(at, first, word)
		}
		said[word] = at
		p.advance()
		if !p.limiterOption(l, word) && (!l.Source || !p.sourceOption(l, word)) {
			p.failWith(diag.Diagnostic{
				Span: at, Message: "a " + kind + " limiter has no option " + strconv.Quote(word),
				Suggest: diag.Nearest(word, []string{"id", "limit", "rate", "entries", "inet", "inet6", "table"}),
			})
		}
	}
	l.Span = l.Span.To(p.last)
	p.limiterNeeds(l, said)
	return l
}

// limiterOption reads an option of both kinds. It returns false if word is not one.
func (p *parser) limiterOption(l *ast.LimiterDef, word string) bool {
	switch word {
	case "id":
		l.ID = uint32(p.within("the id", 1, maxLimiterID))
	case "limit":
		l.Limit = uint32(p.within("the limit", 1, maxLimiterStates))
	case "rate":
		l.Rate, l.Seconds = p.rate("the rate")
	default:
		return false
	}
	return true
}

// sourceOption reads an option of source limiters. It returns false if word is not one.
func (p *parser) sourceOption(l *ast.LimiterDef, word string) bool {
	switch word {
	case "entries":
		l.Entries = uint32(p.within("entries", 1, 1<<32-1))
	case "inet":
		l.Inet = p.senderBits(word, 32)
	case "inet6":
		l.Inet6 = p.senderBits(word, 128)
	case "table":
		p.expect(token.Less, "table")
		name := p.tableName()
		l.Table = &name
		p.expectWord("above", "the table")
		l.Above = uint32(p.within("above", 1, 1<<32-1))
		if p.acceptWord("below") {
			l.Below = uint32(p.within("below", 1, 1<<32-1))
		}
	default:
		return false
	}
	return true
}

func (p *parser) senderBits(family string, most uint64) *uint8 {
	p.expectWord("mask", family)
	n := uint8(p.within("the length of the mask", 1, most))
	return &n
}

// limiterNeeds checks that a limiter has all required options.
func (p *parser) limiterNeeds(l *ast.LimiterDef, said map[string]token.Span) {
	needed := []string{"id", "limit"}
	if l.Source {
		needed = append(needed, "entries")
	}
	for _, word := range needed {
		if !said[word].IsValid() {
			p.faults.Errorf(l.Span, "the limiter needs %s", word)
		}
	}
	if l.Below > l.Above {
		p.faults.Errorf(l.Span, "below must not be more than above")
	}
}
