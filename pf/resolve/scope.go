package resolve

import (
	"fmt"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/source"
	"weir/pf/token"
)

// A scope is one ruleset while it is being filled: the main ruleset or an anchor's.
type scope struct {
	path         string    // path of the anchor; empty: the main ruleset
	out          *ast.File // statements except the rules
	ethers       []*ast.Ether
	scrubs       []*ast.ScrubRule // expanded, like the translations and rules
	translations []*ast.Translation
	rules        []*ast.Rule
	tables       map[string]*ast.Table // tables that it defines, by name
}

func newScope(path string, out *ast.File) *scope {
	return &scope{path: path, out: out, tables: make(map[string]*ast.Table)}
}

// child returns the path of an anchor of that name in the scope.
func (s *scope) child(name string) string {
	if s.path == "" {
		return name
	}
	return s.path + "/" + name
}

// stmts returns the expanded statements with the rules last, in the order of FreeBSD's
// set require-order.
func (s *scope) stmts() []ast.Stmt {
	var queues []ast.Stmt
	stmts := make([]ast.Stmt, 0, len(s.out.Stmts)+len(s.ethers)+len(s.scrubs)+len(s.translations)+len(s.rules))
	for _, stmt := range s.out.Stmts {
		if stageOf(stmt) == queueStage {
			queues = append(queues, stmt)
		} else {
			stmts = append(stmts, stmt)
		}
	}
	for _, e := range s.ethers {
		stmts = append(stmts, e)
	}
	for _, scrub := range s.scrubs {
		stmts = append(stmts, scrub)
	}
	stmts = append(stmts, queues...)
	for _, t := range s.translations {
		stmts = append(stmts, t)
	}
	for _, rule := range s.rules {
		stmts = append(stmts, rule)
	}
	return stmts
}

// body expands the rules in an anchor's braces as a scope of its own. It leaves an anchor
// without braces unchanged.
func (r *resolver) body(in *ast.Anchor) *ast.Anchor {
	if in == nil || !in.Braces.IsValid() {
		return in
	}
	name := in.Name.Text
	if name == "" {
		name = fmt.Sprintf("_%d", r.unnamed)
		r.unnamed++
	}
	s := newScope(r.child(name), &ast.File{Files: r.out.Files})
	r.inScope(s, in.Body)
	r.define(s, in.Name.Span)
	out := *in
	out.Body = s.stmts()
	r.bodies[&out] = s
	if len(out.Body) == 0 {
		return out.Again() // as pfctl prints it
	}
	return &out
}

// loadAnchor expands the rules of a file as an anchor's. set block-policy and fail-policy do
// not apply to them.
func (r *resolver) loadAnchor(in *ast.LoadAnchor) {
	if in.AtRunTime {
		r.runTimeAnchor(in)
		return
	}
	s := newScope(r.child(strings.TrimPrefix(in.Name.Text, "/")), &ast.File{Files: r.out.Files})
	policy, failReturn, loading := r.policy, r.failReturn, r.loading
	r.policy, r.failReturn, r.loading = nil, false, true
	r.inScope(s, in.Body)
	r.policy, r.failReturn, r.loading = policy, failReturn, loading
	r.define(s, in.Name.Span)
	out := *in
	out.File, out.Body = ast.Word{}, s.stmts()
	r.out.Stmts = append(r.out.Stmts, &out)
}

// runTimeAnchor expands rules that were loaded at run time. They come after all else, and
// in place of what the configuration has for the anchor and for the anchors that they
// contain.
func (r *resolver) runTimeAnchor(in *ast.LoadAnchor) {
	if len(in.Flushed) > 0 {
		r.flushed[in.Name.Text] = in.Flushed
	}
	if in.Elsewhere {
		return
	}
	s := newScope(in.Name.Text, &ast.File{Files: r.out.Files})
	before, failReturn := r.order, r.failReturn
	r.policy, r.failReturn, r.loading, r.atRunTime, r.order = nil, false, true, true, order{}
	r.inScope(s, in.Body)
	r.define(s, in.Name.Span)
	r.failReturn, r.loading, r.atRunTime, r.order = failReturn, false, false, before
}

// flush takes the rules away that were flushed from anchors.
func (r *resolver) flush() {
	for path, kinds := range r.flushed {
		s := r.anchors[path]
		if s == nil {
			continue
		}
		for _, kind := range kinds {
			switch kind {
			case source.FilterRules:
				s.rules, s.scrubs = nil, nil
			case source.TranslationRules:
				s.translations = nil
			case source.EtherRules:
				s.ethers = nil
			}
		}
	}
}

// inScope expands statements into a scope.
func (r *resolver) inScope(s *scope, stmts []ast.Stmt) {
	outer, policy := r.scope, r.policy
	r.scope = s
	r.declareAll(stmts)
	for i, stmt := range stmts {
		if r.faults.Full() {
			break
		}
		r.statement(stmt)
		stmts[i] = nil // the original is no longer needed, and there may be 100,000 statements
	}
	r.complete()
	r.scope, r.policy = outer, policy
}

// define registers a scope under its path. Only one anchor of a name may have rules. Those
// that were loaded at run time replace others.
func (r *resolver) define(s *scope, at token.Span) {
	first, ok := r.anchors[s.path]
	if ok && !r.atRunTime && len(first.rules) > 0 {
		r.faults.Add(diag.Diagnostic{
			Span:    at,
			Message: fmt.Sprintf("the anchor %q already has rules", s.path),
			Related: []diag.Related{{Span: r.places[s.path], Note: "these"}},
		})
		return
	}
	if ok && !r.atRunTime {
		s.ethers = append(first.ethers, s.ethers...) // of an ether anchor of the same name
	}
	if r.atRunTime {
		r.replaced[s.path] = true
	} else {
		r.given[s.path] = true
	}
	r.anchors[s.path], r.places[s.path] = s, at
}

// callee returns the path that an anchor in a scope calls, and whether it means all
// anchors inside that path. It returns ok as false if there are too many "..".
func (s *scope) callee(name string) (path string, all, ok bool) {
	path, absolute := strings.CutPrefix(name, "/")
	if !absolute {
		from := s.path
		for strings.HasPrefix(path, "../") {
			if from == "" {
				return "", false, false
			}
			path = path[len("../"):]
			from = from[:max(strings.LastIndexByte(from, '/'), 0)]
		}
		path = (&scope{path: from}).child(path)
	}
	path, all = strings.CutSuffix(path, "/*")
	return path, all, true
}

// checkAnchor rejects what only an anchor's rules can do.
func (r *resolver) checkAnchor(in *ast.Rule) {
	refuse := func(at token.Span, what string) {
		if at.IsValid() {
			r.faults.Errorf(at, "an anchor %s; its rules can", what)
		}
	}
	if in.State != nil && in.State.Keep {
		refuse(in.State.Span, "keeps no state")
	}
	if in.Route != nil {
		refuse(in.Route.Span, "routes nothing")
	}
	for _, pool := range []*ast.Pool{in.Nat, in.Rdr} {
		if pool != nil {
			refuse(pool.Span, "translates nothing")
		}
	}
	if in.AfTo != nil {
		refuse(in.AfTo.Span, "translates nothing")
	}
	if in.Divert != nil {
		refuse(in.Divert.Span, "diverts nothing")
	}
	if in.AllowOpts.IsValid() {
		r.faults.Warnf(in.AllowOpts, "allow-opts does nothing for an anchor; its rules need it")
	}
	if in.Scrub != nil {
		r.faults.Warnf(in.Scrub.Span, "scrub does nothing for an anchor; its rules need it")
	}
	if in.Flags != nil && in.Flags.Set&^in.Flags.Mask != 0 {
		r.faults.Errorf(in.Flags.Span, "never true: it requires flags that the mask leaves out")
	}
}
