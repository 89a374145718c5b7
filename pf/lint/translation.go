package lint

import (
	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/resolve"
)

// translations warns about FreeBSD translation rules that no packet reaches. In these
// lists the first match decides. binat rules ask for something else in each direction, so
// they are not compared.
func translations(rules []*resolve.TranslationRule, list *diag.List) {
	for kind, direction := range map[resolve.TranslationKind]ast.Direction{
		resolve.NatRule: ast.Out, resolve.RdrRule: ast.In,
	} {
		var of []*resolve.Rule
		for _, t := range rules {
			if t.Kind == kind && t.Path == "" {
				r := t.Rule
				r.Quick, r.Direction = true, direction
				of = append(of, &r)
			}
		}
		shadows(of, "an earlier one", list)
	}
}
