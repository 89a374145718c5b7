package resolve

import (
	"fmt"
	"slices"

	"weir/pf/ast"
	"weir/pf/printer"
)

// A Frame is what an ether rule asks of a frame, besides its interface, its direction and
// the addresses of its IP packet.
type Frame struct {
	Type     uint16 // EtherType; 0: any
	From, To MAC
	BridgeTo string // the interface that a frame goes to which the rule passes; empty: none
}

// A MAC is a condition on one address of a frame: it must agree with Addr in the bits of
// Mask. Without bits it is none.
type MAC struct {
	Not        bool
	Addr, Mask [6]byte
}

// Match reports whether an address meets the condition.
func (m *MAC) Match(addr [6]byte) bool {
	for i := range addr {
		if (addr[i]^m.Addr[i])&m.Mask[i] != 0 {
			return m.Not
		}
	}
	return !m.Not
}

// Ethers returns the ether rules.
func (rs *Ruleset) Ethers() []*ListRule {
	n := 0
	for n < len(rs.First) && rs.First[n].IsEther {
		n++
	}
	return rs.First[:n]
}

// An etherLister lowers ether rules to the list that frames meet.
type etherLister struct {
	*flattener
	rules  []*ListRule
	number int // of the next rule that users see
	full   bool
}

// allEthers lowers the ether rules, and those of the anchors that they evaluate.
func (f *flattener) allEthers() []*ListRule {
	l := &etherLister{flattener: f}
	called := make(map[*scope]bool)
	l.scope(f.main, called)
	for _, path := range sortedKeys(f.anchors) {
		if s := f.anchors[path]; len(s.ethers) > 0 && !called[s] {
			f.faults.Warnf(s.ethers[0].Keyword, "these ether rules do nothing: no ether anchor names their anchor")
		}
	}
	return l.rules
}

// scope adds the ether rules of a scope.
func (l *etherLister) scope(s *scope, called map[*scope]bool) {
	called[s] = true
	for _, in := range s.ethers {
		l.expand(s, in, called)
	}
}

// expand adds a rule for each combination of the elements of its lists.
func (l *etherLister) expand(s *scope, in *ast.Ether, called map[*scope]bool) {
	l.unenforcedEther(in)
	for _, on := range oneOrEach(in.On) {
		for _, kind := range oneOrEach(in.Types) {
			for _, from := range oneOrEach(in.FromMACs) {
				for _, to := range oneOrEach(in.ToMACs) {
					for _, src := range oneOrEach(in.From.Hosts) {
						for _, dst := range oneOrEach(in.To.Hosts) {
							one := *in
							one.On, one.Types, one.FromMACs, one.ToMACs = on, kind, from, to
							one.From.Hosts, one.To.Hosts = src, dst
							if !l.mixed(&one) && !l.add(s, &one, called) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// oneOrEach returns the elements of a list, each as a list; without elements, an empty one.
func oneOrEach[T any](list []T) [][]T {
	if len(list) == 0 {
		return [][]T{nil}
	}
	return slices.Collect(slices.Chunk(list, 1))
}

// mixed reports whether a rule asks for addresses of two families: no packet has them.
func (l *etherLister) mixed(in *ast.Ether) bool {
	if len(in.From.Hosts) == 0 || len(in.To.Hosts) == 0 {
		return false
	}
	from, to := &in.From.Hosts[0], &in.To.Hosts[0]
	return from.Kind == ast.HostPrefix && to.Kind == ast.HostPrefix && !from.Not && !to.Not &&
		from.Prefix.Addr().Is4() != to.Prefix.Addr().Is4()
}

// add adds one rule, or an anchor with its rules. It returns false if there are too many.
func (l *etherLister) add(s *scope, in *ast.Ether, called map[*scope]bool) bool {
	if len(l.rules) >= l.maxRules {
		if !l.full {
			l.faults.Errorf(in.Span, "the configuration expands to more than %d ether rules here", l.maxRules)
		}
		l.full = true
		return false
	}
	out := &ListRule{Rule: *l.lower(l.number, &in.Rule), IsEther: true}
	l.number++
	out.Pos, out.Origin, out.Stmt = in.Span.Pos, in.Span, in.Span
	out.Text, out.Scope, out.State = printer.Ether(in), s.path, NoState
	out.Frame = frameOf(in)
	l.inTables(s, &out.Rule)
	l.rules = append(l.rules, out)
	if in.Anchor != nil {
		l.anchor(s, in, out, called)
	}
	return true
}

func frameOf(in *ast.Ether) Frame {
	var f Frame
	if len(in.Types) > 0 {
		f.Type = in.Types[0].Number
	}
	if len(in.FromMACs) > 0 {
		f.From = macOf(&in.FromMACs[0])
	}
	if len(in.ToMACs) > 0 {
		f.To = macOf(&in.ToMACs[0])
	}
	if in.BridgeTo != nil && in.Action == ast.Pass {
		f.BridgeTo = in.BridgeTo.Text
	}
	return f
}

func macOf(m *ast.MAC) MAC { return MAC{Not: m.Not, Addr: m.Addr, Mask: m.Mask} }

// anchor adds the rules of an anchor. Frames that do not meet its conditions meet the rule
// behind the anchor's own, which leads past the others.
func (l *etherLister) anchor(s *scope, in *ast.Ether, out *ListRule, called map[*scope]bool) {
	quick := in.Quick
	out.Action, out.Quick = ast.Match, false
	past := &ListRule{IsEther: true, IsPast: true, Rule: Rule{
		Pos: out.Pos, Origin: out.Origin, Stmt: out.Stmt, Action: ast.Match, State: NoState, Interface: Interface{Any: true},
	}}
	l.rules = append(l.rules, past)
	out.Next = len(l.rules)
	path, bodies := l.etherBodies(s, in)
	for _, body := range bodies {
		switch {
		case l.open[body.path]:
			l.faults.Errorf(in.Anchor.Name.Span, "the anchor %q calls itself", body.path)
		case len(l.open) >= maxCalls:
			l.faults.Errorf(in.Span, "anchor calls are nested more than %d deep", maxCalls)
		default:
			l.open[body.path] = true
			l.scope(body, called)
			delete(l.open, body.path)
		}
	}
	past.Next = len(l.rules)
	out.Anchor = &Call{Path: path, End: len(l.rules), Quick: quick, Flat: true, Braces: in.Anchor.Braces.IsValid()}
}

// etherBodies returns the path that an ether anchor evaluates, and the scopes with rules there.
func (l *etherLister) etherBodies(s *scope, in *ast.Ether) (path string, bodies []*scope) {
	all, ok := false, true
	if body := l.bodies[in.Anchor]; body != nil {
		path = body.path
	} else {
		path, all, ok = s.callee(in.Anchor.Name.Text)
	}
	if !ok {
		l.faults.Errorf(in.Anchor.Name.Span, "this leads out of the configuration: there are too many ..")
		return "", nil
	}
	paths := []string{path}
	if all {
		paths, path = l.in(path), path+"/*"
	}
	for _, path := range paths {
		if body := l.anchors[path]; body != nil {
			bodies = append(bodies, body)
		}
	}
	return path, bodies
}

// unenforcedEther warns about what the dataplane does not do with frames.
func (l *etherLister) unenforcedEther(in *ast.Ether) {
	for _, part := range []struct {
		given       bool
		what, meant string
	}{
		{in.Queue != nil, "ether … queue", "set queue"},
		{in.Dummynet != nil, "ether … dnpipe", "dnpipe"},
		{in.Tagged != nil && in.Direction != ast.In, "ether … tagged, without in", "tagged"},
	} {
		if part.given {
			l.faults.UnenforcedBut(in.Keyword, part.what, "write "+part.meant+" in a rule for packets")
		}
	}
}

// etherBody registers the rules in the braces of an ether anchor under their path, so that
// others may be loaded there at run time.
func (r *resolver) etherBody(in *ast.Anchor) *ast.Anchor {
	if !in.Braces.IsValid() {
		return in
	}
	name := in.Name.Text
	if name == "" {
		name = fmt.Sprintf("_%d", r.unnamed)
		r.unnamed++
	}
	path := r.child(name)
	s := newScope(path, &ast.File{Files: r.out.Files})
	before := r.anchors[path]
	if before != nil && len(before.ethers) > 0 {
		r.faults.Errorf(in.Name.Span, "the anchor %q already has ether rules", path)
	}
	outer := r.scope
	r.scope = s
	for _, stmt := range in.Body {
		if e, ok := stmt.(*ast.Ether); ok { // the parser allows nothing else
			s.ethers = append(s.ethers, r.ether(e))
		}
	}
	r.scope = outer
	if before != nil { // an anchor of filter rules has the same name
		before.ethers = s.ethers
	} else {
		r.anchors[path], r.places[path], r.given[path] = s, in.Name.Span, true
	}
	out := *in
	out.Body = nil
	r.bodies[&out] = s
	for _, e := range s.ethers {
		out.Body = append(out.Body, e)
	}
	return &out
}
