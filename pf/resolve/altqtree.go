package resolve

import (
	"fmt"
	"strconv"
	"time"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/parser"
	"weir/pf/token"
)

// altqBuilder makes the tree of one interface with altq.
type altqBuilder struct {
	*treeBuilder
	on        string
	scheduler string
	queues    []*ast.Queue // of each queue of the tree; nil: the root, or the packets of a queue itself
	below     [][]ast.Word // the names of those below each
	own       []bool       // it also takes packets itself, which have a queue of their own below it
}

// altqTrees makes the trees of FreeBSD's disciplines. The root is the discipline, whose
// name is that of FreeBSD's root class.
func (r *resolver) altqTrees() {
	for _, on := range r.altq.order {
		d := r.altq.disciplines[on]
		if rate := d.Queue.Bandwidth; rate == nil || rate.Rate == 0 {
			r.unenforcedQueue(d.Span, "altq without bandwidth, or with a part of the interface's", "give it the bandwidth of the line")
			continue
		}
		s := d.Queue.ALTQ.Scheduler
		b := &altqBuilder{treeBuilder: r.newTree(&QueueTree{
			Interface: on, Link: lowerLink(&d.Queue.Own), Origin: d.Span, Engine: d.Queue.Own.Engine, Modem: hasModem(&d.Queue.Own),
		}), on: on, scheduler: s.Name.Text}
		b.root(d)
		for i := 0; i < len(b.queues) && len(b.queues) <= MaxTreeQueues; i++ {
			b.fill(i)
		}
		b.checkGuarantees()
		if !r.addTree(b.tree, d.Span) {
			return
		}
	}
}

// root adds the root. Without queues, as with codel, it takes the packets.
func (b *altqBuilder) root(d *ast.Discipline) {
	s := d.Queue.ALTQ.Scheduler
	out := Queue{Name: "root_" + b.on, Origin: d.Span, Parent: -1, Weight: 1, Fair: ast.FairHostFlow, Max: b.rate(d.Queue.Bandwidth, 0)}
	names := d.Queue.ALTQ.Queues
	if b.scheduler == "fairq" || isCodel(s) {
		out.Fair = ast.FairFlow
	}
	b.inherit(&d.Queue.Own, &out)
	if d.Queue.ALTQ.Bucket != nil {
		b.idle(d.Span, "tbrsize", "weir's shaper sends no bursts")
	}
	if isCodel(s) {
		out.Default, names = true, nil
		out.Limit = queueLimit(&d.Queue)
		b.codel(s, &out)
	}
	b.put(nil, out, names, false, out.Max.Bits, true)
}

func queueLimit(q *ast.Queue) uint32 {
	if q.QueueLimit == nil {
		return 0
	}
	return uint32(*q.QueueLimit)
}

// put appends a queue with the names of those below it. part says that its bandwidth is a part of the
// root's rate.
func (b *altqBuilder) put(q *ast.Queue, out Queue, below []ast.Word, own bool, share uint64, part bool) {
	var guarantee token.Span
	if out.Min.Bits > 0 {
		guarantee = out.Origin
	}
	b.queues, b.below, b.own = append(b.queues, q), append(b.below, below), append(b.own, own)
	b.push(out, share, guarantee)
	b.part[len(b.part)-1] = part
}

// fill adds the queues below a queue.
func (b *altqBuilder) fill(i int) {
	first := len(b.queues)
	left := b.share[i]
	for _, name := range b.below[i] {
		q := b.altq.queues[altqPlace{b.on, name.Text}]
		if q == nil {
			b.faults.Warnf(name.Span, "queue %s is named here and defined nowhere", name.Text)
			continue
		}
		out, share, part := b.lower(q, i)
		b.place(q, out, share, part)
		left -= min(left, share)
	}
	if b.own[i] {
		of := &b.tree.Queues[i]
		b.put(nil, Queue{
			Name: b.queues[i].Name.Text, Origin: of.Origin, Parent: i, Default: of.Default, Weight: weight(left),
			Priority: of.Priority, Fair: of.Fair, ECN: of.ECN, RTT: of.RTT, Limit: of.Limit,
		}, nil, false, left, false)
		of = &b.tree.Queues[i]
		of.Default, of.Limit = false, 0
	}
	b.tree.Queues[i].Children = len(b.queues) - first
	if first < len(b.queues) {
		b.tree.Queues[i].First = first
	}
}

// place appends a queue. One of cbq may take packets itself besides having queues below
// it. The packets then have a queue of their own, which has the name.
func (b *altqBuilder) place(q *ast.Queue, out Queue, share uint64, part bool) {
	own := b.scheduler == "cbq" && len(q.ALTQ.Queues) > 0 && (out.Default || b.resolver.queues.used[out.Name])
	if own {
		out.Name += ".all"
	}
	b.put(q, out, q.ALTQ.Queues, own, share, part)
}

// lower converts a queue below another, and returns its bandwidth, and whether that is a part of the
// root's rate. Without one it has all of its parent's.
func (b *altqBuilder) lower(q *ast.Queue, parent int) (out Queue, share uint64, part bool) {
	of, ofPart := b.share[parent], b.part[parent]
	share, part = of, ofPart
	if q.Bandwidth != nil {
		share, part = bitsOf(q.Bandwidth, of), ofPart && isPart(q.Bandwidth)
	}
	out = Queue{
		Name: q.Name.Text, Origin: q.Name.Span, Parent: parent, Weight: weight(share), Limit: queueLimit(q),
	}
	if q.Bandwidth != nil {
		out.Bandwidth = said(q.Bandwidth, of)
	}
	b.inherit(&q.Own, &out)
	switch b.scheduler {
	case "cbq", "priq":
		out.Priority = altqPriority
		if q.Priority != nil {
			out.Priority = uint8(q.Priority.N)
		}
	default:
		if q.Priority != nil {
			b.idle(q.Name.Span, "the priority of a queue of "+b.scheduler, "its queues differ by their bandwidths")
		}
	}
	if b.scheduler == "priq" {
		out.Weight = 1
	}
	borrows := false
	if s := q.ALTQ.Scheduler; s != nil {
		for i := range s.Options {
			borrows = borrows || s.Options[i].Name.Text == "borrow"
			b.option(&s.Options[i], &out, of, ofPart)
		}
	}
	if b.scheduler == "cbq" && !borrows {
		out.Max.Bits, out.MaxPart = b.within(q.Name.Span, share), part
	}
	if out.Min.Bits > out.Max.Bits && out.Max.Bits > 0 {
		b.faults.Errorf(q.Name.Span, "queue %s has a realtime above its upperlimit", out.Name)
	}
	return out, share, part
}

// option applies an option of a scheduler to a queue. part says that the bandwidth above is a part of the
// root's rate.
func (b *altqBuilder) option(o *ast.SchedulerOption, out *Queue, of uint64, part bool) {
	switch o.Name.Text {
	case "default":
		out.Default = true
	case "ecn":
		out.ECN = true
	case "borrow", "codel": // codel is always done
	case "linkshare":
		curve, _ := b.curve(o, of)
		if out.Weight = weight(curve.Bits); curve.Burst != 0 && curve.Burst != curve.Bits {
			b.idle(o.Name.Span, "the first bandwidth of linkshare", "a share has one value")
		}
	case "realtime":
		out.Min, out.MinPart = b.curve(o, of)
		out.MinPart = out.MinPart && part
	case "upperlimit":
		out.Max, out.MaxPart = b.curve(o, of)
		out.MaxPart = out.MaxPart && part
	case "hogs", "buckets":
		b.idle(o.Name.Span, o.Name.Text, "connections share fairly without it")
	default: // red, rio
		b.idle(o.Name.Span, o.Name.Text, "weir keeps every queue short without it")
	}
}

// codel applies the options of codel, whose times are in milliseconds.
func (b *altqBuilder) codel(s *ast.Scheduler, out *Queue) {
	for i := range s.Options {
		o := &s.Options[i]
		switch o.Name.Text {
		case "ecn":
			out.ECN = true
		case "interval":
			out.RTT = min(time.Duration(b.milliseconds(o, 0))*time.Millisecond, 10*time.Second)
		default:
			b.idle(o.Name.Span, o.Name.Text, "it follows from interval")
		}
	}
}

// idle warns of a word without an effect, and says why.
func (b *altqBuilder) idle(at token.Span, what, why string) {
	b.faults.Add(diag.Diagnostic{
		Severity: diag.Warning, Span: at, Kind: "altq: " + what, Message: what + " has no effect: " + why,
	})
}

// curve reads a service curve: a bandwidth, or one for the start, how long that is, and one
// for later. part says that the one for later is a percentage.
func (b *altqBuilder) curve(o *ast.SchedulerOption, of uint64) (rate QueueRate, part bool) {
	switch len(o.Values) {
	case 1:
		rate.Bits, part = b.bandwidth(&o.Values[0], of)
		return rate, part
	case 3:
		rate.Burst, _ = b.bandwidth(&o.Values[0], of)
		rate.For = time.Duration(b.milliseconds(o, 1)) * time.Millisecond
		rate.Bits, part = b.bandwidth(&o.Values[2], of)
		return rate, part
	}
	b.faults.Errorf(o.Name.Span, "%s takes a bandwidth, or a bandwidth, milliseconds and a bandwidth", o.Name.Text)
	return QueueRate{}, false
}

// bandwidth reads a bandwidth, which may be a part of the parent's.
func (b *altqBuilder) bandwidth(w *ast.Word, of uint64) (rate uint64, part bool) {
	bits, percent, problem := parser.BitRate(w.Text)
	if problem != "" {
		b.faults.Errorf(w.Span, "%s", problem)
	}
	return b.within(w.Span, bitsOf(&ast.Bandwidth{Rate: bits, Percent: percent}, of)), percent > 0
}

func (b *altqBuilder) milliseconds(o *ast.SchedulerOption, i int) uint64 {
	if i >= len(o.Values) {
		return 0
	}
	n, err := strconv.ParseUint(o.Values[i].Text, 10, 32)
	if err != nil {
		b.faults.Add(diag.Diagnostic{Span: o.Values[i].Span, Message: fmt.Sprintf("%q is not a number of milliseconds", o.Values[i].Text)})
	}
	return n
}
