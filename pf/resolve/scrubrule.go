package resolve

import "weir/pf/ast"

// scrubRule expands a scrub rule of FreeBSD's.
func (r *resolver) scrubRule(in *ast.ScrubRule) {
	before := r.faults.Errors()
	if construct := scrubUnenforced(in); construct != "" {
		r.faults.Unenforced(in.Keyword, construct)
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

// scrubUnenforced returns what of a scrub rule is not enforced, or "". A rule that only
// has fragments reassembled asks for what is always done.
func scrubUnenforced(in *ast.ScrubRule) string {
	switch {
	case in.No:
		return "no scrub"
	case in.NoDF, in.RandomID, in.ReassembleTCP, in.MinTTL != nil, in.MaxMSS != nil, in.SetTOS != nil:
		return "scrub with options"
	case in.Fragment == "no reassemble":
		return "scrub fragment no reassemble"
	}
	return ""
}
