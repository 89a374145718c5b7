package resolve

import (
	"fmt"
	"slices"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// altq holds the disciplines of interfaces, and the queues that they and other queues
// name, in the order of the file. As in FreeBSD's pfctl, a queue is named before it is
// defined.
type altq struct {
	disciplines map[string]*ast.Discipline // by interface
	order       []string                   // the interfaces, as the disciplines name them
	named       map[string][]altqName      // by the name of the queue
	queues      map[altqPlace]*ast.Queue   // those that are defined
	refused     bool                       // some disciplines and their queues may be missing after an error
	inUse       map[altqKey]token.Span     // defined queues, and priorities used by priq
	defaults    map[string]token.Span      // by interface
}

// altqName is a queue on one interface that is named and may be defined.
type altqName struct {
	on, scheduler string
}

// altqPlace is a queue on an interface.
type altqPlace struct {
	on, queue string
}

// altqKey is a queue, or a priority, on an interface.
type altqKey struct {
	on, queue string
	priority  int // -1: the key is a queue
}

// altqPriority is the default priority of a queue: DEFAULT_PRIORITY of FreeBSD's pfctl.
const altqPriority = 1

// altqPriorities is the number of priorities of a scheduler: RM_MAXPRIO and PRIQ_MAXPRI
// of FreeBSD. Other schedulers have as many as fit into a byte.
var altqPriorities = map[string]int{"cbq": 8, "priq": 16}

// discipline checks an altq and stores it.
func (r *resolver) discipline(d *ast.Discipline) {
	r.aboutQueues(d.Span, "altq")
	r.out.Stmts = append(r.out.Stmts, d)
	r.checkOwn(&d.Queue, true)
	s := d.Queue.ALTQ.Scheduler
	switch {
	case s == nil:
		r.altq.refused = true
		r.faults.Errorf(d.Span, "altq needs a scheduler: cbq, priq, hfsc, fairq or codel")
		return
	case len(d.Queue.ALTQ.Queues) == 0 && !isCodel(s):
		r.faults.Errorf(d.Span, "altq with %s needs queues: queue { … }", s.Name.Text)
	}
	if r.altq.disciplines == nil {
		r.altq.disciplines, r.altq.named = make(map[string]*ast.Discipline), make(map[string][]altqName)
		r.altq.inUse, r.altq.defaults = make(map[altqKey]token.Span), make(map[string]token.Span)
		r.altq.queues = make(map[altqPlace]*ast.Queue)
	}
	for _, i := range d.Queue.On {
		r.inForce(ast.Word{Span: i.Span, Text: i.Name})
		if first := r.altq.disciplines[i.Name]; first != nil {
			r.conflict(i.Span, i.Name+" already has an altq", first.Span)
			continue
		}
		r.altq.disciplines[i.Name] = d
		r.altq.order = append(r.altq.order, i.Name)
		r.altq.name(d.Queue.ALTQ.Queues, altqName{on: i.Name, scheduler: s.Name.Text})
	}
}

// name notes that queues may be defined.
func (a *altq) name(queues []ast.Word, n altqName) {
	for _, q := range queues {
		a.named[q.Text] = append(a.named[q.Text], n)
	}
}

// isCodel reports whether a scheduler has no queues below it.
func isCodel(s *ast.Scheduler) bool { return strings.HasPrefix(s.Name.Text, "codel") }

// altqQueue checks a queue of FreeBSD's ALTQ and stores it.
func (r *resolver) altqQueue(q *ast.Queue) {
	r.out.Stmts = append(r.out.Stmts, q)
	r.checkOwn(q, false)
	switch {
	case r.altq.refused:
		return
	case !r.queues.altq:
		r.faults.Errorf(q.Span, "this queue belongs to no altq on")
		return
	case q.Parent != nil:
		r.faults.Errorf(q.Parent.Span, "with altq a parent lists its queues in braces; a queue does not name its parent")
	case q.Flows > 0 || q.Quantum > 0 || q.Min != nil || q.Max != nil:
		r.faults.Errorf(q.Span, "altq has no flows, quantum, min or max")
	case q.ALTQ.Bucket != nil:
		r.faults.Errorf(q.Span, "tbrsize is for altq on, not for its queues")
	}
	for i := range q.ALTQ.Queues {
		if sub := &q.ALTQ.Queues[i]; sub.Text == q.Name.Text {
			r.faults.Errorf(sub.Span, "queue %s is below itself", sub.Text)
			return
		}
	}
	found := false
	for _, n := range r.altq.named[q.Name.Text] {
		if len(q.On) > 0 && !slices.ContainsFunc(q.On, func(i ast.Interface) bool { return i.Name == n.on }) {
			continue
		}
		found = true
		if !r.altqOn(q, n) {
			return
		}
	}
	if !found {
		message := fmt.Sprintf("no altq on and no queue before this one names queue %s", q.Name.Text)
		r.suggest(q.Name, message, func() []string { return sortedKeys(r.altq.named) })
	}
}

// altqOn checks a queue against the scheduler of one of its interfaces, and notes the
// queues below it. It reports whether the queue is allowed there.
func (r *resolver) altqOn(q *ast.Queue, n altqName) bool {
	d := r.altq.disciplines[n.on]
	priority := altqPriority
	if q.Priority != nil {
		priority = int(q.Priority.N)
	}
	priq := n.scheduler == "priq"
	switch s := q.ALTQ.Scheduler; {
	case s != nil && s.Name.Text != n.scheduler:
		r.conflict(s.Span, fmt.Sprintf("%s has the scheduler %s", n.on, n.scheduler), d.Queue.ALTQ.Scheduler.Span)
		return false
	case priq && len(q.ALTQ.Queues) > 0:
		r.faults.Errorf(q.ALTQ.Queues[0].Span, "with priq, queues have no queues below them")
		return false
	case priq && q.Bandwidth != nil && q.Bandwidth.Percent != 100:
		r.faults.Errorf(q.Bandwidth.Span, "priq queues have no bandwidth")
		return false
	case altqPriorities[n.scheduler] > 0 && priority >= altqPriorities[n.scheduler]:
		r.faults.Errorf(q.Priority.Span, "with %s a priority is at most %d", n.scheduler, altqPriorities[n.scheduler]-1)
		return false
	case !r.altqOnce(altqKey{n.on, q.Name.Text, -1}, q, fmt.Sprintf("queue %s on %s is defined twice", q.Name.Text, n.on)):
		return false
	case priq && !r.altqOnce(altqKey{on: n.on, priority: priority}, q, fmt.Sprintf("two queues on %s have the priority %d; with priq each has its own", n.on, priority)):
		return false
	case !r.altqDefault(q, n.on):
		return false
	}
	r.altq.name(q.ALTQ.Queues, n)
	r.altq.queues[altqPlace{n.on, q.Name.Text}] = q
	return true
}

// altqOnce notes something that may occur once, and returns false if it occurs again.
func (r *resolver) altqOnce(key altqKey, q *ast.Queue, message string) bool {
	if first, again := r.altq.inUse[key]; again {
		r.faults.Add(diag.Diagnostic{Span: q.Name.Span, Message: message, Related: []diag.Related{{Span: first, Note: "the other one"}}})
		return false
	}
	r.altq.inUse[key] = q.Name.Span
	return true
}

// altqDefault notes the default of an interface, and returns false for a second one.
func (r *resolver) altqDefault(q *ast.Queue, on string) bool {
	s := q.ALTQ.Scheduler
	if s == nil {
		return true
	}
	at := slices.IndexFunc(s.Options, func(o ast.SchedulerOption) bool { return o.Name.Text == "default" })
	if at < 0 {
		return true
	}
	if leaf := s.Name.Text == "hfsc" || s.Name.Text == "fairq"; leaf && len(q.ALTQ.Queues) > 0 {
		r.faults.Errorf(s.Options[at].Name.Span, "queue %s has queues below it and cannot be the default", q.Name.Text)
		return false
	}
	if first, again := r.altq.defaults[on]; again {
		r.conflict(s.Options[at].Name.Span, on+" already has a default queue", first)
		return false
	}
	r.altq.defaults[on] = s.Options[at].Name.Span
	return true
}

// checkALTQ checks that each interface with queues has a default. It is silent after
// other errors, because these may be the cause.
func (r *resolver) checkALTQ() {
	if r.altq.refused || r.faults.Errors() > 0 {
		return
	}
	for _, on := range sortedKeys(r.altq.disciplines) {
		d := r.altq.disciplines[on]
		if _, ok := r.altq.defaults[on]; !ok && !isCodel(d.Queue.ALTQ.Scheduler) {
			r.faults.Errorf(d.Span, "no queue on %s is the default", on)
		}
	}
	if r.faults.Errors() == 0 && !r.without.Queues {
		r.altqTrees()
	}
}
