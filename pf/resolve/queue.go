package resolve

import (
	"fmt"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/source"
	"weir/pf/token"
)

// maxQueues limits the queues on all interfaces together. A queue without an interface
// counts once for each interface that has its parent.
const maxQueues = 65536

// queues holds the definitions of queues.
type queues struct {
	named     map[string]bool
	roots     []*ast.Queue            // one for each interface
	children  map[string][]*ast.Queue // by the name of their parent
	listed    []*ast.Queue            // children in order
	altq      bool                    // there is an altq on statement
	ignored   bool                    // a warning says that none has an effect
	refused   bool                    // one was rejected, so those below it have no parent
	placed    map[*ast.Queue]bool
	ordered   []*ast.Queue          // in the printed order: a root, then the queues below it
	count     int                   // number on all interfaces
	inner     map[string]*ast.Queue // queues with others below them, the first of each name
	assigned  []*ast.Word           // queues that rules assign, where pfctl requires a leaf
	undefined map[string]bool       // queues that rules assign and nobody defines
	used      map[string]bool       // the names in rules
	trees     []*QueueTree
	inTrees   int // queues of trees
}

// aboutQueues says what becomes of a construct that belongs to queues. If the user does
// without queues, only the first one is named.
func (r *resolver) aboutQueues(at token.Span, construct string) {
	switch {
	case r.without.Queues:
		r.ignoredQueue(at, construct)
	case !queuesInForce:
		r.unenforcedQueue(at, construct, "")
	}
}

// unenforcedQueue is for a construct that the dataplane does not have. remedy is what the
// user can do besides doing without queues; it may be empty.
func (r *resolver) unenforcedQueue(at token.Span, construct, remedy string) {
	if r.without.Queues {
		r.ignoredQueue(at, construct)
		return
	}
	if remedy != "" {
		remedy += ", or "
	}
	r.faults.UnenforcedBut(at, construct, remedy+"--without "+source.WithoutQueues+" loads the file, and nothing is shaped")
}

func (r *resolver) ignoredQueue(at token.Span, construct string) {
	if !r.queues.ignored {
		r.queues.ignored = true
		r.faults.Warnf(at, "%s and all else about queues has no effect: --without %s", construct, source.WithoutQueues)
	}
}

// queue adds a definition: one root for each of its interfaces, or a child.
func (r *resolver) queue(q *ast.Queue) {
	r.aboutQueues(q.Span, "queue")
	if r.scope != r.main {
		r.faults.Errorf(q.Span, "queues are not defined in an anchor")
	}
	for _, i := range q.On {
		r.inForce(ast.Word{Span: i.Span, Text: i.Name})
	}
	switch {
	case r.queues.altq || q.ALTQ.Scheduler != nil || q.ALTQ.Bucket != nil || len(q.ALTQ.Queues) > 0:
		r.altqQueue(q)
		return
	case q.Parent == nil && len(q.On) == 0:
		r.queues.refused = true
		r.faults.Errorf(q.Span, "a queue needs an interface or a parent")
		return
	case q.Bandwidth == nil && q.Flows == 0:
		r.queues.refused = true
		r.faults.Errorf(q.Span, "a queue needs a bandwidth or flows")
		return
	case r.onGroup(q):
		r.queues.refused = true
		return
	}
	r.checkBandwidth(q)
	r.checkOwn(q, q.Parent == nil)
	if q.Priority != nil && q.Priority.N > mostQueuePriority {
		r.faults.Errorf(q.Priority.Span, "a priority is at most %d", mostQueuePriority)
	}
	if len(q.On) == 0 {
		r.queues.add(q)
		return
	}
	for i := range q.On {
		one := *q
		one.On = q.On[i : i+1 : i+1]
		if q.Parent == nil {
			r.root(&one)
		} else {
			r.queues.add(&one)
		}
	}
}

// onGroup reports an error if a queue names a group where an interface is required.
func (r *resolver) onGroup(q *ast.Queue) (found bool) {
	for _, i := range q.On {
		if r.isGroup(i.Name) {
			r.faults.Errorf(i.Span, "%q is a group; a queue belongs to an interface", i.Name)
			found = true
		}
	}
	return found
}

// inForce warns, once for each name, of queues on an interface that does not exist.
func (r *resolver) inForce(w ast.Word) {
	if r.host.Interface(w.Text) != nil || r.isGroup(w.Text) || r.unknown[w.Text] {
		return
	}
	r.unknown[w.Text] = true
	r.faults.Add(diag.Diagnostic{
		Severity: diag.Warning,
		Span:     w.Span,
		Message:  fmt.Sprintf("queues on %s are not in force: %s does not exist", w.Text, w.Text),
		Suggest:  r.nearest(w.Text, r.host.names),
	})
}

// checkBandwidth checks the bandwidth of an OpenBSD queue.
func (r *resolver) checkBandwidth(q *ast.Queue) {
	for _, b := range []*ast.Bandwidth{q.Bandwidth, q.Min, q.Max} {
		if b != nil && b.Percent > 0 && q.Parent == nil {
			r.faults.Errorf(b.Span, "a bandwidth in %% is a part of the parent's, and a root has none")
		}
		if b != nil && q.Bandwidth == nil {
			r.faults.Errorf(b.Span, "min and max stand behind a bandwidth")
		}
	}
	if q.Parent != nil && (q.Bandwidth == nil || q.Bandwidth.Rate == 0 && q.Bandwidth.Percent == 0 && q.Bandwidth.Burst == nil) {
		r.faults.Errorf(q.Span, "a queue with a parent needs a bandwidth")
	}
}

func (q *queues) define(name string) {
	if q.named == nil {
		q.named = make(map[string]bool)
	}
	q.named[name] = true
}

func (q *queues) use(name string) {
	if q.used == nil {
		q.used = make(map[string]bool)
	}
	q.used[name] = true
}

func (q *queues) add(child *ast.Queue) {
	if q.children == nil {
		q.children = make(map[string][]*ast.Queue)
	}
	q.children[child.Parent.Text] = append(q.children[child.Parent.Text], child)
	q.listed = append(q.listed, child)
}

// mostQueuePriority is the highest priority of a queue.
const mostQueuePriority = 15

// checkOwn checks what pf's queues do not have.
func (r *resolver) checkOwn(q *ast.Queue, isRoot bool) {
	o := &q.Own
	if o.Held.IsValid() && !isRoot {
		r.faults.Errorf(o.Held, "engine and modem belong to the root queue")
	}
	switch {
	case !o.Line.IsValid():
	case !isRoot:
		r.faults.Errorf(o.Line, "link, overhead and mpu belong to the root queue")
	case len(o.Link) == 0 && o.Overhead == nil:
		r.faults.Errorf(o.Line, "mpu needs overhead or link: it is the least of a packet with its overhead")
	case len(o.Link) > 1:
		for i := range o.Link {
			if ast.Links[o.Link[i].Text].Alone {
				r.faults.Errorf(o.Link[i].Span, "%s stands alone after link", o.Link[i].Text)
			}
		}
	}
}

// root adds the root of an interface's queues in one direction.
func (r *resolver) root(q *ast.Queue) {
	for _, other := range r.queues.roots {
		if other.On[0].Name == q.On[0].Name && (other.Direction == ast.In) == (q.Direction == ast.In) {
			r.faults.Add(diag.Diagnostic{
				Span:    q.On[0].Span,
				Message: fmt.Sprintf("%s already has a root queue", rootName(q)),
				Related: []diag.Related{{Span: other.Name.Span, Note: "this one"}},
			})
			return
		}
	}
	r.queues.roots = append(r.queues.roots, q)
}

// rootName names what a root shapes: an interface, and in if it is what comes in there.
func rootName(root *ast.Queue) string {
	if root.Direction == ast.In {
		return root.On[0].Name + " in"
	}
	return root.On[0].Name
}

// checkQueues puts the queues below their roots, checks them, and appends them to the
// statements in pfctl's order.
func (r *resolver) checkQueues() {
	q := &r.queues
	if q.refused {
		return
	}
	before := r.faults.Errors()
	q.placed, q.inner = make(map[*ast.Queue]bool), make(map[string]*ast.Queue)
	for _, root := range q.roots {
		hasDefault := r.below(root, root, map[string]bool{})
		switch {
		case q.count > maxQueues || hasDefault:
		case root.Bandwidth != nil:
			r.faults.Errorf(root.Span, "no queue on %s is the default", rootName(root))
		}
	}
	if q.count > maxQueues {
		return
	}
	looped := r.queueLoops()
	for _, child := range q.listed {
		if !q.placed[child] && !looped[child] {
			r.suggest(*child.Parent, fmt.Sprintf("no queue %q can be the parent", child.Parent.Text), func() []string { return sortedKeys(q.named) })
		}
	}
	r.checkLeaves()
	for _, queue := range q.ordered {
		r.out.Stmts = append(r.out.Stmts, queue)
	}
	if r.faults.Errors() == before && !r.without.Queues {
		r.queueTrees()
	}
}

// checkLeaves rejects rules that assign packets to a queue with others below it.
func (r *resolver) checkLeaves() {
	for _, name := range r.queues.assigned {
		if child := r.queues.inner[name.Text]; child != nil {
			r.faults.Add(diag.Diagnostic{
				Span:    name.Span,
				Message: fmt.Sprintf("queue %s has queues below it and takes no packets itself", name.Text),
				Related: []diag.Related{{Span: child.Name.Span, Note: "this one"}},
			})
		}
	}
}

// below places a queue under root, with all queues below it. path has the names above. It
// reports whether one of them is a default.
func (r *resolver) below(queue, root *ast.Queue, path map[string]bool) bool {
	q := &r.queues
	if q.count++; q.count > maxQueues {
		if q.count == maxQueues+1 {
			r.faults.Errorf(queue.Span, "there are more than %d queues", maxQueues)
		}
		return true
	}
	if path[queue.Name.Text] {
		q.placed[queue] = true
		r.faults.Errorf(queue.Span, "queue %s is below itself", queue.Name.Text)
		return true
	}
	path[queue.Name.Text] = true
	defer delete(path, queue.Name.Text)
	q.place(queue)
	children := r.childrenOf(queue, root)
	if len(children) > 0 && q.inner[queue.Name.Text] == nil {
		q.inner[queue.Name.Text] = children[0]
	}
	hasDefault := queue.Default.IsValid()
	for _, child := range children {
		hasDefault = r.below(child, root, path) || hasDefault
	}
	switch {
	case len(children) == 0:
	case queue == root && root.Bandwidth == nil:
		r.faults.Errorf(queue.Span, "queue %s has flows and no bandwidth, so none can be below it", queue.Name.Text)
	case queue.Default.IsValid():
		r.faults.Errorf(queue.Default, "queue %s has queues below it and cannot be the default", queue.Name.Text)
	case queue.Flows > 0:
		r.faults.Errorf(queue.Span, "queue %s has queues below it and cannot have flows", queue.Name.Text)
	}
	return hasDefault
}

// place notes that a queue is below a root. The first time, the queue is added for
// printing. If there is only one root, the parent implies the interface.
func (q *queues) place(queue *ast.Queue) {
	if q.placed[queue] {
		return
	}
	q.placed[queue] = true
	printed := *queue
	if queue.Parent != nil && len(q.roots) == 1 {
		printed.On, printed.Direction = nil, ast.AnyDirection
	}
	q.ordered = append(q.ordered, &printed)
}

// belongs reports whether a queue with a parent may be below a root: it names no other
// interface and no other direction.
func belongs(child, root *ast.Queue) bool {
	switch {
	case len(child.On) == 0:
		return true
	case child.On[0].Name != root.On[0].Name:
		return false
	}
	return child.Direction == ast.AnyDirection || (child.Direction == ast.In) == (root.Direction == ast.In)
}

// precision is how exactly a queue names its place: by interface and direction, by
// interface, or not.
func precision(q *ast.Queue) int {
	switch {
	case len(q.On) == 0:
		return 0
	case q.Direction == ast.AnyDirection:
		return 1
	}
	return 2
}

// childrenOf returns the queues directly below one. Of two with the same name, it returns
// the one that names its place more exactly.
func (r *resolver) childrenOf(queue, root *ast.Queue) []*ast.Queue {
	var children []*ast.Queue
	at := make(map[string]int)
	for _, child := range r.queues.children[queue.Name.Text] {
		if !belongs(child, root) {
			continue
		}
		i, again := at[child.Name.Text]
		switch {
		case !again:
			at[child.Name.Text] = len(children)
			children = append(children, child)
		case precision(child) == precision(children[i]):
			r.faults.Add(diag.Diagnostic{
				Span:    child.Name.Span,
				Message: fmt.Sprintf("queue %s is defined twice", child.Name.Text),
				Related: []diag.Related{{Span: children[i].Name.Span, Note: "first defined here"}},
			})
			r.queues.placed[child] = true
		case precision(child) > precision(children[i]):
			r.queues.placed[children[i]] = true
			children[i] = child
		default:
			r.queues.placed[child] = true
		}
	}
	return children
}
