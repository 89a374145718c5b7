package resolve

import (
	"fmt"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
)

// maxCalls limits how deep anchors may call anchors, as in pf.
const maxCalls = 64

// A Call makes a rule an anchor. If a packet matches the rule, the rules up to End are
// evaluated, else they are skipped.
type Call struct {
	Path  string // path of the anchor from the main ruleset; /* at the end: all anchors in it
	End   int    // number of the first rule after the anchor's
	Quick bool   // stop after it if a pass or block rule in it matched
	Flat  bool   // its rules contain all its conditions, so they can be evaluated without it

	Braces bool // its rules stand there in braces
}

// A flattener puts the rules of all scopes into one list. The rules of an anchor follow
// each of its calls.
type flattener struct {
	*resolver
	rules    []*Rule
	open     map[string]bool // anchors being called
	children map[string][]string
	full     bool // too many rules

	translated int             // number of translation rules so far
	listed     map[listOf]bool // those that an anchor of their kind evaluates
}

// scope adds the rules of a scope.
func (f *flattener) scope(s *scope) {
	outer := f.resolver.scope
	f.resolver.scope = s
	for _, rule := range s.rules {
		if f.full {
			break
		}
		if len(f.rules) >= f.maxRules {
			f.full = true
			f.faults.Errorf(rule.Span, "the configuration expands to more than %d rules here, with those of the anchors it calls", f.maxRules)
			break
		}
		lowered := f.lower(len(f.rules), rule)
		f.unenforcedDivert(rule, lowered)
		f.unenforcedAfTo(rule, lowered)
		lowered.Scope = s.path
		f.inTables(s, lowered)
		f.rules = append(f.rules, lowered)
		if rule.Anchor != nil {
			f.call(s, rule, lowered)
		}
	}
	f.resolver.scope = outer
}

// inTables gives the tables in a rule their unique names.
func (f *flattener) inTables(s *scope, rule *Rule) {
	for _, a := range []*Address{&rule.From.Addr, &rule.To.Addr} {
		if a.Kind == TableAddress {
			a.Table = s.qualified(a.Table)
		}
	}
	if table := &rule.Limits.Overload; *table != "" {
		*table = s.qualified(*table)
	}
}

// call adds the rules that an anchor calls, with the anchor's conditions.
func (f *flattener) call(s *scope, rule *ast.Rule, lowered *Rule) {
	called, path, ok := f.called(s, rule)
	if !ok {
		return
	}
	body := f.bodies[rule.Anchor]
	lowered.Anchor = &Call{Path: path, Quick: rule.Quick, Braces: body != nil && f.anchors[body.path] == body}
	lowered.Quick = false
	for _, path := range called {
		body := f.anchors[path]
		switch {
		case body == nil:
		case f.open[path]:
			f.faults.Errorf(rule.Anchor.Name.Span, "the anchor %q calls itself", path)
		case len(f.open) >= maxCalls:
			f.faults.Errorf(rule.Span, "anchor calls are nested more than %d deep", maxCalls)
		default:
			f.open[path] = true
			f.scope(body)
			delete(f.open, path)
		}
	}
	lowered.Anchor.End = len(f.rules)
	f.fold(lowered)
}

// called returns the paths of the anchors that an anchor calls, in order.
func (f *flattener) called(s *scope, rule *ast.Rule) (paths []string, path string, ok bool) {
	if body := f.bodies[rule.Anchor]; body != nil && f.anchors[body.path] == body {
		return []string{body.path}, body.path, true
	}
	path, all, ok := s.callee(rule.Anchor.Name.Text)
	if body := f.bodies[rule.Anchor]; body != nil { // replaced at run time
		path, all, ok = body.path, false, true
	}
	switch {
	case !ok:
		f.faults.Errorf(rule.Anchor.Name.Span, "this leads out of the configuration: there are too many ..")
		return nil, "", false
	case all:
		return f.in(path), path + "/*", true
	}
	if f.anchors[path] == nil {
		f.misspelt(rule.Anchor.Name, path)
	}
	return []string{path}, path, true
}

// in returns the anchors directly inside another one, in alphabetical order.
func (f *flattener) in(parent string) []string {
	if f.children == nil {
		f.children = make(map[string][]string)
		for _, path := range sortedKeys(f.anchors) {
			if i := strings.LastIndexByte(path, '/'); i >= 0 {
				f.children[path[:i]] = append(f.children[path[:i]], path)
			}
		}
	}
	return f.children[parent]
}

// fold adds an anchor's conditions to its rules, so that they mean the same if nothing
// skips them. Rules that could never match then are left out. If conditions do not fit
// one rule, the anchor is not flat.
func (f *flattener) fold(call *Rule) {
	first := call.Nr + 1
	body := f.rules[first:]
	switch {
	case len(body) > 0 && !mergeable(call, body):
		return
	case isNeutral(call):
		call.Anchor.Flat = true
		return
	}
	call.Anchor.Flat = true
	kept := f.rules[:first]
	moved := make([]int, len(body)+1) // new positions of each rule of body, and of its end
	for i := 0; i < len(body); {
		in := body[i]
		next := i + 1
		switch mergerOf(call, in) {
		case neverBoth:
			next = in.end() - first
		case notOneRule:
			call.Anchor.Flat = false
			kept = append(kept, in)
		default:
			kept = append(kept, in)
		}
		for i < next {
			i++
			moved[i] = len(kept)
		}
	}
	for nr := first; nr < len(kept); nr++ {
		r := kept[nr]
		r.Nr = nr
		if r.Anchor != nil {
			r.Anchor.End = moved[r.Anchor.End-first]
		}
	}
	f.rules = kept
	call.Anchor.End = len(kept)
}

// end returns the number of the first rule after this one, and after its anchor's rules.
func (r *Rule) end() int {
	if r.Anchor != nil {
		return r.Anchor.End
	}
	return r.Nr + 1
}

// misspelt warns about an anchor without rules in the configuration if its path resembles
// that of one with rules.
func (f *flattener) misspelt(name ast.Word, path string) {
	meant := f.nearest(path, keysOf(f.anchors))
	if meant == "" {
		return
	}
	f.faults.Add(diag.Diagnostic{
		Severity: diag.Warning, Span: name.Span, Suggest: meant,
		Message: fmt.Sprintf("the anchor %q has no rules here", path),
	})
}
