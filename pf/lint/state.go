package lint

import (
	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/resolve"
	"weir/pf/token"
)

// A way is what noWayBack compares: direction, interface, family and protocol of packets.
// A zero field means any.
type way struct {
	direction ast.Direction
	iface     string
	family    ast.Family
	proto     uint8
}

// ways returns the ways under which a rule is found: its own, and those with fields that
// stand for all.
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

// Values under which all rules are found, whatever they ask for.
const (
	everything  = "*"
	everyFamily = ast.Family(255)
	everyProto  = 255 // no packet has this protocol
)

// noWayBack warns about pass rules without state if their direction's replies may be blocked
// and no rule passes them. Without state, both directions need a rule.
func noWayBack(rules []*resolve.Rule, list *diag.List) {
	passing, blocked := map[way]bool{}, map[ast.Direction]bool{}
	for _, r := range rules {
		switch r.Action {
		case ast.Block:
			blocked[r.Direction] = true
		case ast.Pass:
			for _, w := range wayOf(r).ways() {
				passing[w] = true
			}
		}
	}
	for _, r := range rules {
		if r.Action != ast.Pass || r.State != resolve.NoState || r.Direction == ast.AnyDirection {
			continue
		}
		if (blocked[opposite[r.Direction]] || blocked[ast.AnyDirection]) && !hasReply(passing, wayOf(r)) {
			warn(list, "", diag.Diagnostic{
				Span:    r.Stmt,
				Message: "this keeps no state, and no rule passes the replies",
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

var opposite = map[ast.Direction]ast.Direction{ast.In: ast.Out, ast.Out: ast.In}

// hasReply reports whether a rule passes packets in the other direction.
func hasReply(passing map[way]bool, w way) bool {
	for _, direction := range []ast.Direction{opposite[w.direction], ast.AnyDirection} {
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

// either returns the values under which rules for v are found: v and none, or all if v is
// none.
func either[T comparable](v, none, all T) []T {
	if v == none {
		return []T{all}
	}
	return []T{v, none}
}

// noStateOut warns if a configuration blocks incoming packets by default, lets in what it
// wants, and makes no state for outgoing packets. Then replies to connections that the
// box forwards or opens have no state and are blocked.
func noStateOut(rules []*resolve.Rule, list *diag.List) {
	var blocks token.Span
	keepsIn := false
	for _, r := range rules {
		switch {
		case r.Action == ast.Pass && r.State == resolve.KeepState && r.Direction != ast.In, r.Nat != nil && r.Direction != ast.In:
			return // a translation keeps state, too
		case r.Action == ast.Block && r.Direction != ast.In && !isLimited(r):
			return // replies never come without a request
		case r.Action == ast.Pass && r.State == resolve.KeepState:
			keepsIn = true
		case r.Action == ast.Block && r.Direction == ast.In && !isLimited(r) && !blocks.IsValid():
			blocks = r.Stmt
		}
	}
	if keepsIn && blocks.IsValid() {
		warn(list, "", diag.Diagnostic{
			Span:    blocks,
			Message: "no rule keeps state for outgoing packets, so this blocks the replies to them; pass out would let them in",
		})
	}
}

// isLimited reports whether a rule is limited to some addresses, ports or protocols.
func isLimited(r *resolve.Rule) bool {
	return r.From != (resolve.Endpoint{}) || r.To != (resolve.Endpoint{}) || r.Proto != 0 || r.Tagged != "" || r.Anchor != nil
}
