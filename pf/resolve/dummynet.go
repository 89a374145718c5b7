package resolve

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/pf/ast"
	"weir/pf/token"
)

// dummynet holds the configurations of pipes, queues and schedulers, and where rules use
// them.
type dummynet struct {
	defs  map[dummynetKey]*ast.DummynetDef
	uses  []dummynetUse
	known map[dummynetUse]bool
}

// dummynetKey is pipe, queue or sched with a number.
type dummynetKey struct{ kind, number string }

// A dummynetUse is a pipe or a queue for packets of one interface and direction.
type dummynetUse struct {
	on   string
	in   bool
	name string // of the queue that it becomes
	of   *ast.DummynetDef
}

// dummynetDef stores a configuration. It must come before the rules that use it.
func (r *resolver) dummynetDef(d *ast.DummynetDef) {
	r.aboutQueues(d.Span, d.Kind.Text+" … config")
	if r.scope != r.main {
		r.faults.Errorf(d.Span, "pipes are not configured in an anchor")
		return
	}
	r.out.Stmts = append(r.out.Stmts, d)
	key := dummynetKey{d.Kind.Text, d.Number.Text}
	if first := r.dummynet.defs[key]; first != nil {
		r.conflict(d.Span, fmt.Sprintf("%s %s is configured twice", key.kind, key.number), first.Span)
		return
	}
	if r.dummynet.defs == nil {
		r.dummynet.defs, r.dummynet.known = make(map[dummynetKey]*ast.DummynetDef), make(map[dummynetUse]bool)
	}
	r.dummynet.defs[key] = d
	for _, missing := range []struct {
		at   token.Span
		what string
	}{
		{d.Delay, "delay"}, {d.Loss, "plr"},
	} {
		if missing.at.IsValid() {
			r.unenforcedQueue(missing.at, missing.what+" of dummynet", "tc-netem(8) does it on the interface")
		}
	}
	switch {
	case d.Kind.Text == "pipe" && d.Mask.IsValid():
		r.unenforcedQueue(d.Mask, "a pipe for each host", "write mask in a queue of the pipe, whose hosts share it fairly")
	case d.Kind.Text == "queue" && d.Pipe == nil:
		r.faults.Errorf(d.Span, "queue %s has no pipe", d.Number.Text)
	}
}

// dummynetRule reports macOS's rule. It may be for packets of one direction of connections that begin in
// the other one, which no rule here can name.
func (r *resolver) dummynetRule(d *ast.PacketPipe) {
	r.out.Stmts = append(r.out.Stmts, d)
	r.unenforcedQueue(d.Span, "a dummynet rule", "rules for connections with a pipe for each direction: match … dnpipe (1, 2), with pipe N config … in the file")
}

// useDummynet notes the pipes or queues of an expanded rule, and gives it the name of the
// queue that they become.
func (r *resolver) useDummynet(out *ast.Rule) {
	d := *out.Dummynet
	kind, word := "pipe", "dnpipe"
	if d.Queue {
		kind, word = "queue", "dnqueue"
	}
	if out.Anchor != nil {
		r.unenforcedQueue(d.Span, word+" of an anchor", "")
		return
	}
	defs := make([]*ast.DummynetDef, len(d.Numbers))
	for i := range d.Numbers {
		if defs[i] = r.dummynet.defs[dummynetKey{kind, d.Numbers[i].Text}]; defs[i] == nil && d.Numbers[i].Text != "0" {
			r.unenforcedQueue(d.Span, word+" without a configuration", fmt.Sprintf("write or include it before the rule: %s %s config …", kind, d.Numbers[i].Text))
			return
		}
	}
	if len(out.On) != 1 || out.On[0].Not || out.On[0].RDomain != nil || out.On[0].Name == ast.AnyInterface || r.isGroup(out.On[0].Name) || out.Direction == ast.AnyDirection {
		r.unenforcedQueue(d.Span, word+" in a rule without one interface and a direction", "")
		return
	}
	if out.Set.Queue != nil {
		r.conflict(d.Span, "a rule has a queue or a "+word, out.Set.Queue.Span)
		return
	}
	numbers := make([]string, len(d.Numbers))
	for i := range d.Numbers {
		numbers[i] = d.Numbers[i].Text
	}
	d.Name = word + "_" + strings.Join(numbers, "_")
	out.Dummynet = &d
	for i, def := range defs {
		u := dummynetUse{on: out.On[0].Name, in: (out.Direction == ast.In) == (i == 0), name: d.Name, of: def}
		if def != nil && !r.dummynet.known[u] {
			r.dummynet.known[u] = true
			r.dummynet.uses = append(r.dummynet.uses, u)
		}
	}
}

// dummynetTrees makes a tree for each interface and direction with pipes. Its root is as
// fast as the dataplane allows. Below it are the pipes, and a queue for all other packets.
func (r *resolver) dummynetTrees() {
	places := map[string]*treeBuilder{}
	var order []string
	home := map[*ast.DummynetDef]string{} // the tree of each pipe
	for _, u := range r.dummynet.uses {
		pipe := r.pipeOf(u.of)
		if pipe == nil {
			return
		}
		place := (&QueueTree{Interface: u.on, In: u.in}).name()
		if at := home[pipe]; at != "" && at != place {
			r.unenforcedQueue(pipe.Span, "a pipe on more than one interface or direction", "")
			return
		}
		home[pipe] = place
		if places[place] == nil {
			places[place] = r.newTree(&QueueTree{Interface: u.on, In: u.in, Origin: u.of.Span})
			order = append(order, place)
		}
	}
	for _, place := range order {
		b := places[place]
		if slices.ContainsFunc(r.queues.trees, func(t *QueueTree) bool { return t.name() == place }) {
			r.faults.Errorf(b.tree.Origin, "%s has queues already, so it can have no pipe", place)
			return
		}
		r.pipes(b, place, home)
		if !r.addTree(b.tree, b.tree.Origin) {
			return
		}
	}
}

// pipeOf returns the pipe that a use leads to. It reports an error if there is none.
func (r *resolver) pipeOf(d *ast.DummynetDef) *ast.DummynetDef {
	if d.Kind.Text == "pipe" {
		return d
	}
	pipe := r.dummynet.defs[dummynetKey{"pipe", d.Pipe.Text}]
	if pipe == nil {
		r.faults.Errorf(d.Pipe.Span, "pipe %s is not configured", d.Pipe.Text)
	}
	return pipe
}

// pipes fills the tree of one place.
func (r *resolver) pipes(b *treeBuilder, place string, home map[*ast.DummynetDef]string) {
	origin := b.tree.Origin
	b.push(Queue{Name: "dummynet", Origin: origin, Parent: -1, Weight: 1, Fair: ast.FairHostFlow, Max: QueueRate{Bits: MaxQueueRate}}, 0, token.Span{})
	b.push(Queue{Name: "dummynet_rest", Origin: origin, Default: true, Weight: 1, Fair: ast.FairHostFlow}, 0, token.Span{})
	var pipes []*ast.DummynetDef
	for _, u := range r.dummynet.uses {
		if pipe := r.pipeOf(u.of); home[pipe] == place && !slices.Contains(pipes, pipe) {
			pipes = append(pipes, pipe)
			out := Queue{Name: "pipe_" + pipe.Number.Text, Origin: pipe.Span, Weight: 1, Fair: ast.FairFlow}
			if pipe.Bandwidth != nil {
				out.Max = b.rate(pipe.Bandwidth, 0)
			}
			b.push(out, 0, token.Span{})
		}
	}
	b.tree.Queues[0].First, b.tree.Queues[0].Children = 1, 1+len(pipes)
	for i, pipe := range pipes {
		first := len(b.tree.Queues)
		for _, u := range r.dummynet.uses {
			if u.on == b.tree.Interface && u.in == b.tree.In && r.pipeOf(u.of) == pipe {
				b.push(r.dummynetQueue(&u, pipe, 2+i), 0, token.Span{})
			}
		}
		b.tree.Queues[2+i].First, b.tree.Queues[2+i].Children = first, len(b.tree.Queues)-first
	}
}

// dummynetQueue returns the queue for packets of a use.
func (r *resolver) dummynetQueue(u *dummynetUse, pipe *ast.DummynetDef, parent int) Queue {
	out := Queue{Name: u.name, Origin: u.of.Span, Parent: parent, Weight: max(1, uint32(u.of.Weight)), Fair: ast.FairFlow}
	for _, d := range []*ast.DummynetDef{r.dummynet.defs[dummynetKey{"sched", pipe.Number.Text}], pipe, u.of} {
		if d == nil {
			continue
		}
		out.ECN = out.ECN || d.ECN
		if d.Interval > 0 {
			out.RTT = min(max(d.Interval, 100*time.Microsecond), 10*time.Second)
		}
		if d.Slots > 0 {
			out.Limit = d.Slots
		}
		if d.Mask.IsValid() {
			out.Fair, out.FairSaid = ast.FairHostFlow, true
		}
	}
	return out
}
