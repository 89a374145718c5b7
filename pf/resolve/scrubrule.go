package resolve

import (
	"slices"

	"weir/pf/ast"
	"weir/pf/printer"
)

// scrubRule expands a scrub rule of FreeBSD's.
func (r *resolver) scrubRule(in *ast.ScrubRule) {
	before := r.faults.Errors()
	if in.Ruleset != nil {
		r.scope.scrubs = append(r.scope.scrubs, in)
		return
	}
	if in.No && (in.NoDF || in.RandomID || in.ReassembleTCP || in.MinTTL != nil || in.MaxMSS != nil || in.RTable != nil) {
		r.faults.Warnf(in.Keyword, "the options of no scrub do nothing")
	}
	r.idleTable(&in.Rule)
	r.scrubFragments(in)
	r.textsGiven(&in.Rule)
	l := r.lists(&in.Rule)
	if r.faults.Errors() > before {
		return
	}
	l.accept = func(out *ast.Rule, _ [listed]int) bool {
		s := *in
		s.Rule = *out
		fitBits(&s.Rule)
		if r.consistent(&s.Rule) && r.texts(&s.Rule) {
			r.scope.scrubs = append(r.scope.scrubs, &s)
			r.total++
		}
		return true
	}
	r.expand(&in.Rule, l)
}

// scrubFragments notes what a scrub rule does with fragments.
func (r *resolver) scrubFragments(in *ast.ScrubRule) {
	switch {
	case in.No:
	case in.Fragment == "no reassemble":
		r.options.FragmentsAlone, r.asPieces = true, true
	default:
		r.whole = true
	}
}

// fragmentsListed notes whether the scrub rules choose how fragments meet the rules. If all ask
// for the same, there is nothing to choose.
func (r *resolver) fragmentsListed() {
	if r.asPieces && r.whole && !r.notWhole {
		r.options.FragmentsAlone, r.options.FragmentsListed = false, true
	}
}

// FirstRules returns the rules that stand before the filter rules: ether rules, scrub rules, then
// what translation lists become.
func FirstRules(ethers, scrubs []*ListRule, translations []*TranslationRule) []*ListRule {
	lists := ListRules(translations)
	before := len(ethers) + len(scrubs)
	for nr, s := range scrubs {
		s.Nr, s.Next = nr, before
	}
	for _, l := range lists {
		if l.Next != 0 {
			l.Next += before
		}
		if l.Anchor != nil {
			l.Anchor.End += before
		}
	}
	return slices.Concat(ethers, scrubs, lists)
}

// Scrubs returns FreeBSD's scrub rules: the first one that matches counts.
func (rs *Ruleset) Scrubs() []*ListRule {
	first := len(rs.Ethers())
	n := first
	for n < len(rs.First) && rs.First[n].IsScrub {
		n++
	}
	return rs.First[first:n]
}

// allScrubs lowers FreeBSD's scrub rules. If none of them asks for anything but whole
// packets, there is nothing to evaluate.
func (f *flattener) allScrubs() []*ListRule {
	called := make(map[*scope]bool)
	rules := f.scrubRules(f.main, called)
	for _, path := range sortedKeys(f.anchors) {
		if s := f.anchors[path]; len(s.scrubs) > 0 && !called[s] {
			f.faults.Warnf(s.scrubs[0].Keyword, "these scrub rules do nothing: no scrub-anchor names their anchor")
		}
	}
	if !slices.ContainsFunc(rules, f.scrubAsks) {
		return nil
	}
	return rules
}

// scrubAsks reports whether a scrub rule asks for anything.
func (f *flattener) scrubAsks(l *ListRule) bool {
	return l.Rule.Scrub != Scrub{} || l.Rule.RTable != nil || l.Pieces && f.resolver.options.FragmentsListed
}

// scrubRules lowers the scrub rules of a scope, and those of the anchors that it calls.
func (f *flattener) scrubRules(s *scope, called map[*scope]bool) []*ListRule {
	outer := f.resolver.scope
	f.resolver.scope = s
	defer func() { f.resolver.scope = outer }()
	called[s] = true
	var rules []*ListRule
	for _, in := range s.scrubs {
		if in.Ruleset != nil {
			rules = append(rules, f.scrubAnchor(s, in, called)...)
			continue
		}
		rule := *f.lower(0, &in.Rule)
		f.inTables(s, &rule)
		rule.Text, rule.Scope = printer.Scrub(in), s.path
		rule.Action, rule.State = ast.Match, NoState
		rule.Log, rule.LogAll, rule.LogMatches, rule.LogUser, rule.LogTo = false, false, false, false, 0 // of what is dropped because it is not normal
		if in.No {
			rule.RTable = nil
		} else {
			rule.Scrub = lowerScrubRule(in)
		}
		rules = append(rules, &ListRule{Rule: rule, IsScrub: true, Pieces: !in.No && in.Fragment == "no reassemble"})
	}
	return rules
}

// scrubAnchor returns the scrub rules of the anchors that a scrub-anchor names.
func (f *flattener) scrubAnchor(s *scope, in *ast.ScrubRule, called map[*scope]bool) []*ListRule {
	path, all, ok := s.callee(in.Ruleset.Text)
	if !ok {
		f.faults.Errorf(in.Ruleset.Span, "this leads out of the configuration: there are too many ..")
		return nil
	}
	paths := []string{path}
	if all {
		paths = f.in(path)
	}
	var rules []*ListRule
	for _, path := range paths {
		body := f.anchors[path]
		switch {
		case body == nil:
		case f.open[path]:
			f.faults.Errorf(in.Ruleset.Span, "the anchor %q calls itself", path)
		case len(f.open) >= maxCalls:
			f.faults.Errorf(in.Span, "anchor calls are nested more than %d deep", maxCalls)
		default:
			f.open[path] = true
			rules = append(rules, f.scrubRules(body, called)...)
			delete(f.open, path)
		}
	}
	return rules
}

func lowerScrubRule(in *ast.ScrubRule) Scrub {
	s := Scrub{NoDF: in.NoDF, RandomID: in.RandomID, ReassembleTCP: in.ReassembleTCP, SetTOS: lowerTOS(in.SetTOS)}
	if in.MinTTL != nil {
		n, _ := number(in.MinTTL.Text) // the parser has checked it
		s.MinTTL = uint8(n)
	}
	if in.MaxMSS != nil {
		n, _ := number(in.MaxMSS.Text)
		s.MaxMSS = uint16(n)
	}
	return s
}
