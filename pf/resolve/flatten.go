package resolve

import (
	"fmt"
	"slices"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
)

// maxCalls is how deep anchors may call anchors, as in pf.
const maxCalls = 64

// A Call is what makes a rule an anchor: if a packet has what the rule asks for,
// the rules up to End are judged, else they are passed over.
type Call struct {
	Path  string // of the anchor, from the configuration's own rules on; with /* at its end: all anchors in it
	End   int    // number of the first rule behind the anchor's
	Quick bool   // nothing behind it is judged if a pass or block rule in it matched
	Flat  bool   // its rules ask for all that it asks for, and so may be judged without it
}

// A flattener puts the rules of all scopes in one row, those of an anchor behind
// it wherever it is called.
type flattener struct {
	*resolver
	rules    []*Rule
	open     map[string]bool // anchors that are being called
	children map[string][]string
	full     bool // there are too many rules

	translated int // translation rules so far
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
		f.inTables(s, lowered)
		f.rules = append(f.rules, lowered)
		if rule.Anchor != nil {
			f.call(s, rule, lowered)
		}
	}
	f.resolver.scope = outer
}

// inTables returns the tables that a rule names the names that tell them apart.
func (f *flattener) inTables(s *scope, rule *Rule) {
	for _, a := range []*Address{&rule.From.Addr, &rule.To.Addr} {
		if a.Kind == TableAddress {
			a.Table = s.qualified(a.Table)
		}
	}
}

// call adds the rules that an anchor calls, and makes them ask for what it asks
// for.
func (f *flattener) call(s *scope, rule *ast.Rule, lowered *Rule) {
	called, path, ok := f.called(s, rule)
	if !ok {
		return
	}
	lowered.Anchor = &Call{Path: path, Quick: rule.Quick}
	lowered.Quick = false
	for _, path := range called {
		body := f.anchors[path]
		switch {
		case body == nil:
		case f.open[path]:
			f.faults.Errorf(rule.Anchor.Name.Span, "the anchor %q calls itself", path)
		case len(f.open) >= maxCalls:
			f.faults.Errorf(rule.Span, "anchors call anchors more than %d deep", maxCalls)
		default:
			f.open[path] = true
			f.scope(body)
			delete(f.open, path)
		}
	}
	lowered.Anchor.End = len(f.rules)
	f.fold(rule, lowered)
}

// called returns the paths of the anchors that an anchor calls, in order.
func (f *flattener) called(s *scope, rule *ast.Rule) (paths []string, path string, ok bool) {
	if body := f.bodies[rule.Anchor]; body != nil {
		return []string{body.path}, body.path, true
	}
	path, all, ok := s.callee(rule.Anchor.Name.Text)
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

// in returns the anchors that stand directly in another, in alphabetical order.
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

// fold makes the rules of an anchor ask for what the anchor asks for, so that
// they mean the same where nothing passes over them. Rules that then could never
// match are left out. What cannot be said in one rule is not enforced.
func (f *flattener) fold(rule *ast.Rule, call *Rule) {
	first := call.Nr + 1
	body := f.rules[first:]
	if call.Anchor.Quick && !allQuick(body) {
		f.faults.Unenforced(rule.Span, "quick of an anchor")
	}
	switch {
	case len(body) > 0 && !mergeable(call, body):
		f.faults.Unenforced(rule.Span, conditionOfAnchor)
		return
	case asksNothing(call):
		call.Anchor.Flat = true
		return
	}
	call.Anchor.Flat = true
	kept := f.rules[:first]
	moved := make([]int, len(body)+1) // where each rule of body, and its end, come to stand
	for i := 0; i < len(body); {
		in := body[i]
		next := i + 1
		switch both(call, in) {
		case neverBoth:
			next = in.end() - first
		case notOneRule:
			f.faults.Unenforced(rule.Span, conditionOfAnchor)
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

// conditionOfAnchor is what an anchor asks for and its rules cannot.
const conditionOfAnchor = "this condition of an anchor"

// end is the number of the first rule behind the rule, and behind the rules of
// the anchor that it is.
func (r *Rule) end() int {
	if r.Anchor != nil {
		return r.Anchor.End
	}
	return r.Nr + 1
}

// allQuick reports whether the rules that decide end the judging themselves.
func allQuick(rules []*Rule) bool {
	return !slices.ContainsFunc(rules, func(r *Rule) bool { return r.Action != ast.Match && !r.Quick })
}

// misspelt warns of an anchor without rules in the configuration, if its path is
// much like that of one with rules.
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
