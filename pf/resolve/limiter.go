package resolve

import (
	"fmt"
	"slices"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/field"
)

// limiterKey is unique for each kind of limiter: a name or a number.
type limiterKey struct {
	source bool
	name   string // empty: the key is id
	id     uint32
}

// useLimiter checks that a rule's limiter is defined before it.
func (r *resolver) useLimiter(use *ast.Limiter, source bool) {
	if use == nil {
		return
	}
	path := map[bool]string{false: "StateLimiter", true: "SourceLimiter"}[source]
	kind := field.At(path).Word
	r.unenforced(path, use.Span)
	key := limiterKey{source: source, name: use.Name.Text}
	if id, isNumber := number(use.Name.Text); use.ByID && isNumber {
		key = limiterKey{source: source, id: uint32(id)}
	}
	if r.limiters[key] != nil {
		return
	}
	if key.id > 0 { // as in pf, which only looks up names
		r.faults.Warnf(use.Name.Span, "no %s has the id %d", kind, key.id)
		return
	}
	r.suggest(use.Name, fmt.Sprintf("the %s %q is not defined", kind, use.Name.Text), func() []string {
		var names []string
		for k := range r.limiters {
			if k.source == source && k.name != "" && !use.ByID {
				names = append(names, k.name)
			}
		}
		slices.Sort(names) // so that the suggestion among equally near names is always the same
		return names
	})
}

// limiterDef checks the definition of a limiter and stores it.
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
