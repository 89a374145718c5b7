package lint

import (
	"fmt"
	"slices"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/resolve"
)

// queues warns about queues that get no packets, and about rules whose packets do not get
// where the rule sends them. It says nothing if there are none.
func queues(rules *resolve.Ruleset, list *diag.List) {
	if len(rules.Queues) == 0 {
		return
	}
	where, defined := placesOf(rules.Queues), map[string]bool{}
	for _, s := range rules.Source.Stmts {
		if q, ok := s.(*ast.Queue); ok {
			defined[q.Name.Text] = true
		}
	}
	named := map[string]bool{}
	for _, r := range rules.Rules {
		for _, name := range namesOf(r) {
			named[name] = true
		}
		switch {
		case r.SetQueue.Name == "":
		case r.Action == ast.Block:
			warn(list, "", diag.Diagnostic{Span: r.Stmt, Message: "this blocks its packets, so its queue gets none"})
		default:
			elsewhere(r, where, defined, list)
		}
	}
	unnamed(rules.Queues, named, list)
	limited(rules.Queues, list)
	skipped(rules, list)
	overruled(rules.Rules, list)
}

// namesOf returns the queues that a rule names.
func namesOf(r *resolve.Rule) []string {
	q := r.SetQueue
	if q.Name == "" {
		return nil
	}
	if q.Name == q.Ack {
		return []string{q.Name}
	}
	return []string{q.Name, q.Ack}
}

// placesOf returns the interfaces of each queue that takes packets.
func placesOf(trees []*resolve.QueueTree) map[string][]string {
	where := map[string][]string{}
	for _, t := range trees {
		for i := range t.Queues {
			q := &t.Queues[i]
			if q.Children == 0 && !slices.Contains(where[q.Name], t.Interface) {
				where[q.Name] = append(where[q.Name], t.Interface)
			}
		}
	}
	return where
}

// elsewhere warns about a rule for packets that leave by an interface without the queue.
// Packets that come in may leave anywhere, so of a rule for these only the name counts. The
// resolver has warned of queues that are not defined.
func elsewhere(r *resolve.Rule, where map[string][]string, defined map[string]bool, list *diag.List) {
	for _, name := range namesOf(r) {
		on := where[name]
		one := r.Direction == ast.Out && !r.Interface.Any && !r.Interface.Not && !r.Interface.Group && r.Interface.RDomain == nil
		var message string
		switch {
		case !defined[name]:
			continue
		case len(on) == 0:
			message = fmt.Sprintf("queue %s takes no packets on any interface, so these go to the default queue", name)
		case one && !slices.Contains(on, r.Interface.Name):
			message = fmt.Sprintf("queue %s is on %s, so what leaves by %s does not get there", name, strings.Join(on, " and "), r.Interface.Name)
		default:
			continue
		}
		warn(list, "", diag.Diagnostic{Span: r.Stmt, Message: message})
	}
}

// unnamed warns about queues that get no packets.
func unnamed(trees []*resolve.QueueTree, named map[string]bool, list *diag.List) {
	for _, t := range trees {
		for i := range t.Queues {
			if q := &t.Queues[i]; q.Children == 0 && !q.Default && !named[q.Name] {
				warn(list, unusedQueue, diag.Diagnostic{
					Span: q.Origin, Message: fmt.Sprintf("no rule sends packets to queue %s, and it is not the default", q.Name),
				})
			}
		}
	}
}

// limited warns about lengths of queues in which no packets wait.
func limited(trees []*resolve.QueueTree, list *diag.List) {
	for _, t := range trees {
		if t.Engine == ast.EngineQueue || t.Modem && t.Engine != ast.EnginePhantom {
			continue
		}
		for i := range t.Queues {
			if q := &t.Queues[i]; q.Limit > 0 {
				warn(list, idleLimit, diag.Diagnostic{Span: q.Origin, Message: "qlimit has no effect: no packets wait in a queue"})
			}
		}
	}
}

// skipped warns about queues on interfaces that no rule sees.
func skipped(rules *resolve.Ruleset, list *diag.List) {
	for _, t := range rules.Queues {
		if slices.Contains(rules.Options.Skip, t.Interface) {
			warn(list, "", diag.Diagnostic{
				Span: t.Origin, Message: fmt.Sprintf("set skip on %s: no rule sends packets to the queues there, so the default takes all", t.Interface),
			})
		}
	}
}

// overruled warns about pass rules whose queue never counts, because a later rule without
// a queue decides about all their packets. Rules of anchors are left out.
func overruled(rules []*resolve.Rule, list *diag.List) {
	later := ender{newSides(), newSides()}
	for i := len(rules) - 1; i >= 0; i-- {
		r := rules[i]
		switch {
		case r.Scope != "" || r.Anchor != nil:
		case r.Action == ast.Match && (r.Nat != nil || r.Rdr != nil):
			later.addressed = newSides()
		case r.Action != ast.Pass:
		case r.SetQueue.Name == "":
			if takes(r) {
				later.add(r)
			}
		case !r.Quick:
			if by := later.find(r); by != nil {
				warn(list, "", diag.Diagnostic{
					Span:    r.Stmt,
					Message: "this queue never counts: a later rule without one decides about all these packets; use match here, or quick",
					Related: []diag.Related{{Span: by.Stmt, Note: "this one"}},
				})
			}
		}
	}
}
