package parser

import (
	"strconv"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// scrubRule reads a scrub rule of FreeBSD's.
func (p *parser) scrubRule() ast.Stmt {
	s := &ast.ScrubRule{Keyword: p.tok.Span}
	s.Span = p.tok.Span
	s.No = p.acceptWord("no")
	s.Keyword = s.Keyword.To(p.tok.Span)
	p.advance()
	p.direction(&s.Rule)
	at := p.tok.Span
	if p.logQuick(&s.Log, &s.Quick); s.Quick {
		p.faults.Errorf(at, "scrub rules cannot be quick: the first match decides")
	}
	p.on(&s.Rule)
	s.Family, s.FamilySpan = p.family()
	p.proto(&s.Rule)
	if !p.acceptWord("all") {
		p.fromTo(&s.Rule)
	}
	given := make(map[string]token.Span)
	for p.scrubRuleOption(s, given) {
		p.accept(token.Comma)
	}
	if at, ok := given["reassemble"]; ok && s.Direction != ast.AnyDirection {
		p.faults.Errorf(at, "reassemble tcp needs both directions: remove in or out")
	}
	s.Span = s.Span.To(p.last)
	return s
}

// scrubRuleOption reads one option. given has the earlier ones. It returns false if there
// is no option here.
func (p *parser) scrubRuleOption(s *ast.ScrubRule, given map[string]token.Span) bool {
	name, at := p.tok.Text, p.tok.Span
	switch {
	case p.acceptWord("no-df"):
		s.NoDF = true
	case p.acceptWord("random-id"):
		s.RandomID = true
	case p.acceptWord("min-ttl"):
		s.MinTTL = p.scrubNumber(name, maxTTL)
	case p.acceptWord("max-mss"):
		s.MaxMSS = p.scrubNumber(name, 1<<16-1)
	case p.acceptWord("set-tos"):
		s.SetTOS = p.tos()
	case p.acceptWord("reassemble"):
		p.reassembled()
		s.ReassembleTCP = true
	case p.acceptWord("fragment"):
		s.Fragment = p.fragments()
	case p.acceptWord("rtable"):
		p.rtable(&s.Rule, at)
	case p.isWord("tagged"), p.is(token.Not):
		p.tagged(&s.Rule)
		return true // it reports a repetition itself
	default:
		return false
	}
	if first, twice := given[name]; twice {
		p.givenTwice(at, first, name)
	}
	given[name] = at
	return true
}

func (p *parser) scrubNumber(name string, limit uint64) *ast.Word {
	w, n := p.number(name, limit)
	w.Text = strconv.FormatUint(n, 10)
	return &w
}

// fragments reads how fragments are handled.
func (p *parser) fragments() string {
	ways := []string{"reassemble", "crop", "drop-ovl"}
	prefix := ""
	if p.acceptWord("no") {
		ways, prefix = ways[:1], "no "
	}
	for _, way := range ways {
		if p.acceptWord(way) {
			return prefix + way
		}
	}
	p.failWith(diag.Diagnostic{
		Span:    p.tok.Span,
		Message: "expected \"reassemble\" or \"no reassemble\" after fragment, found " + p.describe(),
		Suggest: diag.Nearest(p.tok.Text, ways),
	})
	return ""
}

// scrubAnchor reads macOS's scrub-anchor. It has no conditions here.
func (p *parser) scrubAnchor() ast.Stmt {
	s := &ast.ScrubRule{Keyword: p.tok.Span}
	s.Span = p.tok.Span
	p.advance()
	if !p.tok.IsText() {
		p.expected("the name of an anchor")
	}
	name := p.anchorPath()
	s.Ruleset = &name
	p.acceptWord("all")
	s.Span = s.Span.To(p.last)
	return s
}
