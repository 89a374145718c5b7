package parser

import (
	"slices"
	"strconv"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

var stateKinds = map[string]ast.StateKind{
	"keep": ast.PlainState, "modulate": ast.ModulatedState, "synproxy": ast.SynproxyState,
}

// state reads keep state and similar clauses, or no state.
func (p *parser) state(r *ast.Rule) {
	start := p.tok.Span
	word := p.tok.Text
	s := &ast.State{Keep: word != "no", Kind: stateKinds[word]}
	p.advance()
	p.expectWord("state", word)
	if !s.Keep && p.is(token.LeftParen) {
		p.fail(p.tok.Span, "no state takes no options: without a state there is nothing that they apply to")
	}
	if s.Keep && p.is(token.LeftParen) {
		p.advance()
		for {
			s.Options = p.stateOption(s.Options)
			p.comma(token.RightParen)
			if p.accept(token.RightParen) {
				break
			}
		}
	}
	s.Span = start.To(p.last)
	if r.State != nil {
		p.givenTwice(s.Span, r.State.Span, "state")
		return
	}
	r.State = s
}

// stateWords start state options. Timeouts start with their names.
var stateWords = map[string]ast.StateOptionKind{
	"max": ast.StateMax, "no-sync": ast.StateNoSync, "source-track": ast.StateSourceTrack,
	"max-src-states": ast.StateMaxSrcStates, "max-src-conn": ast.StateMaxSrcConn,
	"max-src-conn-rate": ast.StateMaxSrcConnRate, "max-src-nodes": ast.StateMaxSrcNodes,
	"overload": ast.StateOverload, "if-bound": ast.StateIfBound, "floating": ast.StateFloating,
	"sloppy": ast.StateSloppy, "pflow": ast.StatePflow, "allow-related": ast.StateAllowRelated,
}

// isStateWord reports whether a word starts a state option with a name of its own.
func isStateWord(word string) bool {
	_, ok := stateWords[word]
	return ok
}

// stateOption reads a state option and appends it to those before it, unless one of them
// is the same or its opposite.
func (p *parser) stateOption(before []ast.StateOption) []ast.StateOption {
	start := p.tok.Span
	kind, known := stateWords[p.tok.Text]
	if !known || !p.is(token.Word) {
		kind = ast.StateTimeout
	}
	o := ast.StateOption{Kind: kind}
	if kind == ast.StateTimeout {
		o.Name = p.stateTimeoutName()
		_, n := p.number("the timeout "+o.Name, 1<<32-1)
		o.N = uint32(n)
	} else {
		p.advance()
		p.stateOptionValue(&o)
	}
	o.Span = start.To(p.last)
	for i := range before {
		if excludes(&before[i], &o) {
			p.givenTwice(o.Span, before[i].Span, stateOptionName(&o))
			return before
		}
	}
	return append(before, o)
}

// excludes reports whether two options exclude each other.
func excludes(a, b *ast.StateOption) bool {
	isLock := func(o *ast.StateOption) bool { return o.Kind == ast.StateIfBound || o.Kind == ast.StateFloating }
	return a.Kind == b.Kind && a.Name == b.Name || isLock(a) && isLock(b)
}

func stateOptionName(o *ast.StateOption) string {
	switch o.Kind {
	case ast.StateTimeout:
		return o.Name
	case ast.StateIfBound, ast.StateFloating:
		return "if-bound or floating"
	}
	return o.Kind.String()
}

// stateTimeoutName reads the name of a timeout that a state can have.
func (p *parser) stateTimeoutName() string {
	name := p.word("an option of the state")
	if name.Text == "frag" || name.Text == "interval" {
		p.fail(name.Span, "%s is not a timeout of states; use it with set timeout", name.Text)
	}
	if slices.Contains(timeoutNames, name.Text) {
		return name.Text
	}
	words := slices.Clone(timeoutNames)
	for word := range stateWords {
		words = append(words, word)
	}
	slices.Sort(words) // so that the suggestion among equally near names is always the same
	p.failWith(diag.Diagnostic{
		Span:    name.Span,
		Message: "unknown state option " + strconv.Quote(name.Text),
		Suggest: diag.Nearest(name.Text, words),
	})
	return ""
}

// stateOptionValue reads the value after the word of an option.
func (p *parser) stateOptionValue(o *ast.StateOption) {
	switch o.Kind {
	case ast.StateMax, ast.StateMaxSrcStates, ast.StateMaxSrcConn, ast.StateMaxSrcNodes:
		o.N = p.limit(o.Kind.String(), 1<<32-1, o.Kind != ast.StateMax)
	case ast.StateMaxSrcConnRate:
		o.N, o.Seconds = p.rate(o.Kind.String())
	case ast.StateSourceTrack:
		switch {
		case p.acceptWord("rule"):
			o.Track = ast.TrackRule
		case p.acceptWord("global"):
			o.Track = ast.TrackGlobal
		}
	case ast.StateOverload:
		p.expect(token.Less, "overload")
		o.Table = p.tableName().Text
		if p.acceptWord("flush") {
			o.Flush = ast.FlushRule
			if p.acceptWord("global") {
				o.Flush = ast.FlushGlobal
			}
		}
	}
}

// limit reads a number. If positive is set it must not be 0.
func (p *parser) limit(what string, most uint64, positive bool) uint32 {
	at := p.tok.Span
	_, n := p.number(what, most)
	if positive && n == 0 {
		p.faults.Errorf(at, "%s must be at least 1", what)
	}
	return uint32(n)
}

// mostRate is PF_THRESHOLD_MAX: pf counts in thousandths in 32 bits.
const mostRate = (1<<32 - 1) / 1000

// rate reads a number of events, a slash and seconds.
func (p *parser) rate(what string) (n, seconds uint32) {
	n = p.limit(what, mostRate, true)
	p.expect(token.Slash, "the number of "+what)
	return n, p.limit("the seconds of "+what, 1<<32-1, true)
}
