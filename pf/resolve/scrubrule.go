package resolve

import (
	"slices"

	"weir/pf/ast"
	"weir/pf/printer"
)

// scrubRule expands a scrub rule of FreeBSD's.
func (r *resolver) scrubRule(in *ast.ScrubRule) {
	before := r.faults.Errors()
	if in.No && (in.NoDF || in.RandomID || in.MinTTL != nil || in.MaxMSS != nil) {
		r.faults.Warnf(in.Keyword, "the options of no scrub do nothing")
	}
	if construct := scrubUnenforced(in); construct != "" {
		r.faults.Unenforced(in.Keyword, construct)
	}
	if r.path != "" {
		r.faults.Warnf(in.Keyword, "scrub rules do nothing in an anchor")
	}
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

// scrubUnenforced returns what of a scrub rule is not enforced, or "".
func scrubUnenforced(in *ast.ScrubRule) string {
	switch {
	case in.SetTOS != nil:
		return "scrub … set-tos"
	case in.ReassembleTCP:
		return "scrub … reassemble tcp"
	case in.Fragment == "no reassemble":
		return "scrub … fragment no reassemble"
	case in.RTable != nil:
		return "scrub … rtable"
	}
	return ""
}

// FirstRules returns the rules that stand before the filter rules: scrub rules, then what
// translation lists become.
func FirstRules(scrubs []*ListRule, translations []*TranslationRule) []*ListRule {
	lists := ListRules(translations)
	for nr, s := range scrubs {
		s.Nr, s.Next = nr, len(scrubs)
	}
	for _, l := range lists {
		if l.Next != 0 {
			l.Next += len(scrubs)
		}
		if l.Anchor != nil {
			l.Anchor.End += len(scrubs)
		}
	}
	return append(slices.Clip(scrubs), lists...)
}

// Scrubs returns FreeBSD's scrub rules: the first one that matches counts.
func (rs *Ruleset) Scrubs() []*ListRule {
	n := 0
	for n < len(rs.First) && rs.First[n].IsScrub {
		n++
	}
	return rs.First[:n]
}

// scrubRules lowers FreeBSD's scrub rules. If none of them asks for anything but whole
// packets, there is nothing to evaluate. Those in anchors do nothing.
func (f *flattener) scrubRules(s *scope) []*ListRule {
	var rules []*ListRule
	asks := false
	for _, in := range s.scrubs {
		rule := *f.lower(0, &in.Rule)
		f.inTables(s, &rule)
		rule.Text = printer.Scrub(in)
		if asksRoutes(&rule) {
			f.faults.Unenforced(in.Keyword, "no-route or urpf-failed in a scrub rule")
		}
		rule.Action, rule.State = ast.Match, NoState
		rule.Log, rule.LogAll = false, false // of what is dropped because it is not normal
		if !in.No {
			rule.Scrub = lowerScrubRule(in)
		}
		asks = asks || rule.Scrub != Scrub{}
		rules = append(rules, &ListRule{Rule: rule, IsScrub: true})
	}
	if !asks {
		return nil
	}
	return rules
}

// asksRoutes reports whether a rule asks about the routes of a packet's addresses: there
// are no packets yet for the replies that scrub rules choose.
func asksRoutes(r *Rule) bool {
	return slices.ContainsFunc([]AddressKind{r.From.Addr.Kind, r.To.Addr.Kind}, func(k AddressKind) bool {
		return k == NoRouteAddress || k == URPFFailedAddress
	})
}

func lowerScrubRule(in *ast.ScrubRule) Scrub {
	s := Scrub{NoDF: in.NoDF, RandomID: in.RandomID}
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
