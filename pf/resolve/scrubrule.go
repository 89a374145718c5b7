package resolve

import "weir/pf/ast"

// scrubRule expands a scrub rule of FreeBSD's.
func (r *resolver) scrubRule(in *ast.ScrubRule) {
	before := r.faults.Errors()
	construct := "scrub"
	if in.No {
		construct = "no scrub"
	}
	r.faults.Unenforced(in.Keyword, construct)
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
