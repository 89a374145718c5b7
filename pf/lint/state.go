package lint

import (
	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/resolve"
	"weir/pf/token"
)

// A way is what noWayBack compares of a rule: the direction of packets, their
// interface, family and protocol; the zero value of a field is any.
type way struct {
	direction ast.Direction
	iface     string
	family    ast.Family
	proto     uint8
}

// ways gives the ways under which a rule is found: its own, and those in which
// fields stand for all.
func (w way) ways() []way {
	all := []way{w}
	add := func(change func(*way) bool) {
		for _, v := range all {
			if change(&v) {
				all = append(all, v)
			}
		}
	}
	add(func(v *way) bool { same := v.iface == everything; v.iface = everything; return !same })
	add(func(v *way) bool { v.family = everyFamily; return true })
	add(func(v *way) bool { v.proto = everyProto; return true })
	return all
}

// Values of fields under which all rules are found, whatever they ask for.
const (
	everything  = "*"
	everyFamily = ast.Family(255)
	everyProto  = 255 // which no packet has
)

// noWayBack warns of pass rules without state whose answers no rule passes: both
// directions of a connection are judged then.
func noWayBack(rules []*resolve.Rule, list *diag.List) {
	passing := map[way]bool{}
	for _, r := range rules {
		if r.Action == ast.Pass {
			for _, w := range wayOf(r).ways() {
				passing[w] = true
			}
		}
	}
	for _, r := range rules {
		if r.Action == ast.Pass && r.State == resolve.NoState && r.Direction != ast.AnyDirection && !answered(passing, wayOf(r)) {
			warn(list, "", diag.Diagnostic{
				Span:    r.Stmt,
				Message: "this keeps no state, and no rule passes the answers",
			})
		}
	}
}

func wayOf(r *resolve.Rule) way {
	w := way{r.Direction, r.Interface.Name, r.Family, r.Proto}
	if r.Interface.Any || r.Interface.Not || r.Interface.Group {
		w.iface = ""
	}
	return w
}

// answered reports whether a rule passes packets the other way.
func answered(passing map[way]bool, w way) bool {
	back := map[ast.Direction]ast.Direction{ast.In: ast.Out, ast.Out: ast.In}[w.direction]
	for _, direction := range []ast.Direction{back, ast.AnyDirection} {
		for _, iface := range either(w.iface, "", everything) {
			for _, family := range either(w.family, ast.AnyFamily, everyFamily) {
				for _, proto := range either(w.proto, 0, everyProto) {
					if passing[way{direction, iface, family, proto}] {
						return true
					}
				}
			}
		}
	}
	return false
}

// either gives the values under which rules are found that go with v: itself and
// none, or for none all.
func either[T comparable](v, none, all T) []T {
	if v == none {
		return []T{all}
	}
	return []T{v, none}
}

// noStateOut warns where a configuration blocks what comes in, lets in what it
// wants, and makes no state of anything that goes out: of a connection that the
// box forwards or opens itself, the answers come in without a state and are
// blocked.
func noStateOut(rules []*resolve.Rule, list *diag.List) {
	var blocks token.Span
	keepsIn := false
	for _, r := range rules {
		switch {
		case r.Action == ast.Pass && r.State == resolve.KeepState && r.Direction != ast.In:
			return
		case r.Action == ast.Block && r.Direction != ast.In && !asksMore(r):
			return // nothing goes out unasked either
		case r.Action == ast.Pass && r.State == resolve.KeepState:
			keepsIn = true
		case r.Action == ast.Block && r.Direction == ast.In && !asksMore(r) && !blocks.IsValid():
			blocks = r.Stmt
		}
	}
	if keepsIn && blocks.IsValid() {
		warn(list, "", diag.Diagnostic{
			Span:    blocks,
			Message: "no rule keeps state of what goes out, so this blocks the answers to it; pass out would let them in",
		})
	}
}

// asksMore reports whether a rule is for some addresses, ports or protocols only.
func asksMore(r *resolve.Rule) bool {
	return r.From != (resolve.Endpoint{}) || r.To != (resolve.Endpoint{}) || r.Proto != 0 || r.Tagged != "" || r.Anchor != nil
}
