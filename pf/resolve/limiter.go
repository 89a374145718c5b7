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

// A Limiter is a limit that several rules share.
type Limiter struct {
	Source        bool // it counts the states of each source apart
	Name          string
	ID            uint8
	Limit         uint32 // states; of a source limiter those of one source
	Rate, Seconds uint32 // states made in a span; 0: any number

	// of a source limiter
	Entries      uint32 // sources
	Inet, Inet6  uint8  // bits of an address that tell sources apart
	Table        string // of sources with many states; "": none
	Above, Below uint32 // with more states a source gets into it, and with fewer it leaves it; Below 0: never
}

// Limiting is the use of a limiter by a rule. ID 0: none. A rule whose limiter does not exist
// never matches.
type Limiting struct {
	ID    uint8
	Block bool // what the limiter refuses is dropped; otherwise the rule does not match it
}

// MaxLimiterEntries is the most sources that all source limiters together can have.
const MaxLimiterEntries = 1<<24 - 1

func lowerLimiterDef(l *ast.LimiterDef) Limiter {
	out := Limiter{
		Source: l.Source, Name: l.Name.Text, ID: uint8(l.ID), Limit: l.Limit, Rate: l.Rate, Seconds: l.Seconds,
		Entries: l.Entries, Above: l.Above, Below: l.Below,
	}
	if l.Source {
		out.Inet, out.Inet6 = 32, 128
	}
	if l.Inet != nil {
		out.Inet = *l.Inet
	}
	if l.Inet6 != nil {
		out.Inet6 = *l.Inet6
	}
	if l.Table != nil {
		out.Table = l.Table.Text
	}
	return out
}

// allLimiters returns the limiters in the order of their definitions.
func (r *resolver) allLimiters() (all []Limiter) {
	entries := uint64(0)
	for _, s := range r.main.out.Stmts {
		l, ok := s.(*ast.LimiterDef)
		if !ok {
			continue
		}
		all = append(all, lowerLimiterDef(l))
		if before := entries; before <= MaxLimiterEntries {
			if entries += uint64(l.Entries); entries > MaxLimiterEntries {
				r.faults.Errorf(l.Span, "weir has room for %d entries of source limiters", MaxLimiterEntries)
			}
		}
	}
	return all
}

func (r *resolver) lowerLimiter(use *ast.Limiter, source bool) Limiting {
	if use == nil {
		return Limiting{}
	}
	if id, isNumber := number(use.Name.Text); use.ByID && isNumber {
		return Limiting{uint8(id), use.Block}
	}
	def := r.limiters[limiterKey{source: source, name: use.Name.Text}]
	if def == nil {
		return Limiting{} // reported
	}
	return Limiting{uint8(def.ID), use.Block}
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
