package resolve

import (
	"fmt"

	"weir/pf/ast"
	"weir/pf/diag"
)

// limiterKey is what no two limiters of a kind have both: a name, or a number.
type limiterKey struct {
	source bool
	name   string // empty: id is meant
	id     uint32
}

// limiterDef takes the definition of a limiter.
func (r *resolver) limiterDef(l *ast.LimiterDef) {
	r.faults.Unenforced(l.Span, map[bool]string{false: "state limiter", true: "source limiter"}[l.Source])
	if r.limiters == nil {
		r.limiters = make(map[limiterKey]*ast.LimiterDef)
	}
	if r.scope != r.main {
		r.faults.Errorf(l.Span, "limiters are not defined in an anchor")
	}
	if l.Table != nil {
		h := ast.Host{Span: l.Table.Span, Kind: ast.HostTable, Name: l.Table.Text, Bits: -1}
		r.resolve(&h, ruleHost)
	}
	keys := map[limiterKey]string{
		{source: l.Source, name: l.Name.Text}: "the name " + l.Name.Text,
		{source: l.Source, id: l.ID}:          fmt.Sprintf("the id %d", l.ID),
	}
	for key, what := range keys {
		if first := r.limiters[key]; first != nil {
			r.faults.Add(diag.Diagnostic{
				Span: l.Name.Span, Message: "another limiter has " + what,
				Related: []diag.Related{{Span: first.Name.Span, Note: "this one"}},
			})
		}
		r.limiters[key] = l
	}
	r.out.Stmts = append(r.out.Stmts, l)
}
