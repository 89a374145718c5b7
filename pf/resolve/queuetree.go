package resolve

import (
	"fmt"
	"slices"
	"time"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// Limits of what one file can define.
const (
	MaxQueueTrees = 255
	MaxTreeQueues = 4095            // in all trees together
	MaxQueueDepth = 8               // levels of a tree, the root included
	MaxQueueRate  = 100_000_000_000 // bits per second
	MinQueueRate  = 8_000
)

// A QueueTree is the queues of one interface and direction.
type QueueTree struct {
	Interface string
	In        bool // of what comes in at the interface; else of what leaves by it
	Link      Link
	Engine    ast.Engine
	Modem     bool    // a modem with a queue of its own is behind the interface
	Queues    []Queue // parents before their children, siblings one after the other; [0] is the root
	Origin    token.Span
}

// A Link is how many bytes packets take on a line.
type Link struct {
	Known    bool // the file says it; else it follows from the interface
	Overhead int  // bytes beyond the IP packet
	MPU      int  // the least bytes of a packet with its overhead
	Cells    ast.Cells
}

// A Queue is a queue with all that it inherits.
type Queue struct {
	Name      string
	Origin    token.Span // of its name
	Parent    int        // -1: the root
	Children  int
	First     int // index of the first child
	Default   bool
	Weight    uint32 // its part of what its parent has beyond guarantees, in kbit/s
	Min, Max  QueueRate
	Bandwidth QueueRate // as the file says; zero: it does not
	MinPart   bool      // Min is a part of the root's rate: a percentage, and so are the bandwidths above it
	MaxPart   bool      // likewise
	Priority  uint8
	Fair      ast.Fairness
	FairSaid  bool // the file says so
	ECN       bool
	RTT       time.Duration // 0: not given
	Limit     uint32        // packets; 0: not given
	Flows     uint32        // likewise
	Quantum   uint32        // bytes; likewise
}

// A QueueRate is a number of bits per second, and another for the start of a busy period.
// Zero: none.
type QueueRate struct {
	Bits, Burst uint64
	For         time.Duration // 0: there is no burst
	Percent     uint8         // what the file says; 0: it says the number
}

// treeBuilder makes the tree of one root.
type treeBuilder struct {
	*resolver
	tree  *QueueTree
	from  []*ast.Queue // of each queue of the tree
	share []uint64     // the bandwidth of each, of which the percentages below it are parts
	part  []bool       // whether that is a part of the root's rate
	mins  []token.Span // where each is guaranteed a rate
	depth []int
	names map[string]token.Span
}

// queueTrees makes the tree of each interface and direction.
func (r *resolver) queueTrees() {
	for _, root := range r.queues.roots {
		if root.Bandwidth == nil {
			r.rateless(root)
			continue
		}
		b := r.newTree(&QueueTree{
			Interface: root.On[0].Name, In: root.Direction == ast.In, Link: lowerLink(&root.Own), Origin: root.Name.Span,
			Engine: root.Own.Engine, Modem: hasModem(&root.Own),
		})
		b.build(root)
		if !r.addTree(b.tree, root.Span) {
			return
		}
	}
}

// rateless is for a root queue with flows alone. In pf its connections share the device's own queue
// fairly, at whatever rate the device has. Nothing else can be below it, and it limits nothing.
func (r *resolver) rateless(root *ast.Queue) {
	r.faults.Warnf(root.Span, "this queue has no effect: nobody knows its rate; with the bandwidth of the line, connections share it fairly")
}

func (r *resolver) newTree(t *QueueTree) *treeBuilder {
	return &treeBuilder{resolver: r, tree: t, names: make(map[string]token.Span)}
}

// addTree adds a tree, and returns false if there are too many.
func (r *resolver) addTree(t *QueueTree, at token.Span) bool {
	q := &r.queues
	q.trees = append(q.trees, t)
	if q.inTrees += len(t.Queues); q.inTrees > MaxTreeQueues {
		r.faults.Errorf(at, "with these there are more than %d queues on all interfaces", MaxTreeQueues)
		return false
	}
	if len(q.trees) > MaxQueueTrees {
		r.faults.Errorf(at, "there are more than %d root queues", MaxQueueTrees)
		return false
	}
	return true
}

// build adds the root, then the queues below each queue, level by level.
func (b *treeBuilder) build(root *ast.Queue) {
	b.add(root, -1)
	for i := 0; i < len(b.from) && len(b.from) <= MaxTreeQueues; i++ {
		children := b.childrenOf(b.from[i], root)
		if len(children) == 0 {
			continue
		}
		b.tree.Queues[i].First, b.tree.Queues[i].Children = len(b.from), len(children)
		for _, child := range children {
			b.add(child, i)
		}
	}
	b.checkGuarantees()
	b.checkDefaults()
}

// add appends a queue below another.
func (b *treeBuilder) add(q *ast.Queue, parent int) {
	out := Queue{
		Name: q.Name.Text, Origin: q.Name.Span, Parent: parent, Default: q.Default.IsValid(), Fair: ast.FairHostFlow,
		Flows: uint32(q.Flows), Quantum: uint32(q.Quantum),
	}
	of, part := uint64(0), false
	if parent >= 0 {
		of, part = b.share[parent], b.part[parent]
	}
	b.inherit(&q.Own, &out)
	if q.QueueLimit != nil {
		out.Limit = uint32(*q.QueueLimit)
	}
	if q.Priority != nil {
		out.Priority = uint8(q.Priority.N)
	}
	b.rates(q, &out, of)
	out.MinPart, out.MaxPart = part && isPart(q.Min), part && isPart(q.Max)
	var guarantee token.Span
	if q.Min != nil {
		guarantee = q.Min.Span
	}
	b.from = append(b.from, q)
	b.push(out, share(q, of), guarantee)
	b.part[len(b.part)-1] = parent < 0 || part && isPart(q.Bandwidth)
}

func isPart(b *ast.Bandwidth) bool { return b != nil && b.Percent > 0 }

// inherit sets what a queue has from the one above unless it says otherwise.
func (b *treeBuilder) inherit(own *ast.OwnQueue, out *Queue) {
	if out.Parent >= 0 {
		above := &b.tree.Queues[out.Parent]
		out.Fair, out.FairSaid, out.ECN, out.RTT = above.Fair, above.FairSaid, above.ECN, above.RTT
	}
	if own.Fair != ast.FairNotGiven {
		out.Fair, out.FairSaid = own.Fair, true
	}
	if b.tree.Engine == ast.EngineQueue && own.Fair != ast.FairNotGiven && own.Fair != ast.FairFlow {
		b.faults.Warnf(own.FairAt, "engine queue needs CAKE in the kernel (sch_cake) for this; without it connections share, whatever their hosts")
	}
	out.ECN = out.ECN || own.ECN.IsValid()
	if own.RTT != nil {
		out.RTT = own.RTT.For
	}
}

// push appends a queue with the bandwidth of which percentages below it are parts, and the
// place of its guarantee.
func (b *treeBuilder) push(q Queue, share uint64, guarantee token.Span) {
	if first, again := b.names[q.Name]; again {
		b.faults.Add(diag.Diagnostic{
			Span:    q.Origin,
			Message: fmt.Sprintf("queue %s is defined twice on %s", q.Name, b.tree.name()),
			Related: []diag.Related{{Span: first, Note: "the other one"}},
		})
	}
	b.names[q.Name] = q.Origin
	depth := 1
	if q.Parent >= 0 {
		depth = b.depth[q.Parent] + 1
	}
	if depth == MaxQueueDepth+1 {
		b.faults.Errorf(q.Origin, "queues are at most %d deep, the root included", MaxQueueDepth)
	}
	b.tree.Queues = append(b.tree.Queues, q)
	b.share, b.mins, b.depth = append(b.share, share), append(b.mins, guarantee), append(b.depth, depth)
	b.part = append(b.part, false)
}

// name names what the tree shapes.
func (t *QueueTree) name() string {
	if t.In {
		return t.Interface + " in"
	}
	return t.Interface
}

// share returns the bandwidth of a queue, of which the percentages below it are parts. For
// a root it is its rate.
func share(q *ast.Queue, of uint64) uint64 {
	b := q.Bandwidth
	if q.Parent == nil && q.Max != nil {
		b = q.Max
	}
	return bitsOf(b, of)
}

// bitsOf returns a bandwidth in bits per second.
func bitsOf(b *ast.Bandwidth, of uint64) uint64 {
	if b.Percent > 0 {
		return of / 100 * uint64(b.Percent)
	}
	return b.Rate
}

// said returns a bandwidth as the file says it, without a burst.
func said(b *ast.Bandwidth, of uint64) QueueRate {
	return QueueRate{Bits: bitsOf(b, of), Percent: b.Percent}
}

// rates sets the weight and the rates of a queue. A root has no weight and no guarantee:
// its rate is its max, or else its bandwidth.
func (b *treeBuilder) rates(q *ast.Queue, out *Queue, of uint64) {
	out.Weight = 1
	if q.Parent == nil {
		limit := q.Bandwidth
		if q.Max != nil {
			limit = q.Max
		}
		if out.Max = b.rate(limit, of); out.Max.Bits == 0 {
			b.faults.Errorf(limit.Span, "the rate of a root queue is not 0")
		}
		if q.Min != nil {
			b.faults.Warnf(q.Min.Span, "min has no effect in a root queue: there is nobody to share with")
		}
		return
	}
	out.Weight, out.Bandwidth = weight(bitsOf(q.Bandwidth, of)), said(q.Bandwidth, of)
	if q.Bandwidth.Burst != nil {
		b.faults.Warnf(q.Bandwidth.Span, "the burst of a share has no effect here; min and max may have one")
	}
	out.Min, out.Max = b.rate(q.Min, of), b.rate(q.Max, of)
	if out.Min.Bits > out.Max.Bits && out.Max.Bits > 0 {
		b.conflict(q.Min.Span, fmt.Sprintf("queue %s is guaranteed more than its max", out.Name), q.Max.Span)
	}
}

// weight returns the weight of a share in bits per second.
func weight(bits uint64) uint32 { return uint32(max(1, min(bits, MaxQueueRate)/1000)) }

// rate converts a bandwidth that is a guarantee or a limit. What is below the least rate
// becomes that rate.
func (b *treeBuilder) rate(in *ast.Bandwidth, of uint64) QueueRate {
	if in == nil {
		return QueueRate{}
	}
	rate := said(in, of)
	rate.Bits = b.within(in.Span, rate.Bits)
	if in.Burst != nil && b.tree.Engine == ast.EngineQueue {
		b.faults.Warnf(in.Span, "the burst has no effect with engine queue")
	}
	if in.Burst != nil {
		rate.Burst, rate.For = b.within(in.Span, in.Burst.Rate), time.Duration(in.Burst.For)*time.Millisecond
	}
	return rate
}

// within returns a rate that the dataplane can keep.
func (b *treeBuilder) within(at token.Span, bits uint64) uint64 {
	switch {
	case bits > MaxQueueRate:
		b.faults.Errorf(at, "a rate is at most 100G")
	case bits > 0 && bits < MinQueueRate:
		b.faults.Warnf(at, "this becomes 8K, which is weir's least rate")
		return MinQueueRate
	}
	return bits
}

// checkGuarantees rejects guarantees that a queue cannot give to those below it.
func (b *treeBuilder) checkGuarantees() {
	queues := b.tree.Queues
	most := make([]uint64, len(queues))  // what each can have
	below := make([]uint64, len(queues)) // what the queues below each are guaranteed
	for i := range queues {
		most[i] = queues[i].Max.Bits
		if p := queues[i].Parent; p >= 0 && (most[i] == 0 || most[p] < most[i]) {
			most[i] = most[p]
		}
	}
	for i := len(queues) - 1; i >= 0; i-- {
		if below[i] > most[i] {
			b.faults.Add(diag.Diagnostic{
				Span:    queues[i].Origin,
				Message: fmt.Sprintf("the queues below %s are guaranteed %s, and it has at most %s", queues[i].Name, bitText(below[i]), bitText(most[i])),
				Related: b.guaranteed(i),
			})
			below[i] = most[i] // once is enough
		}
		if p := queues[i].Parent; p >= 0 {
			below[p] += max(below[i], queues[i].Min.Bits)
		}
	}
}

// guaranteed returns the places of the guarantees directly below a queue.
func (b *treeBuilder) guaranteed(i int) []diag.Related {
	var places []diag.Related
	for k := range b.tree.Queues[i].Children {
		if at := b.mins[b.tree.Queues[i].First+k]; at.IsValid() {
			places = append(places, diag.Related{Span: at})
		}
	}
	return places
}

// bitText prints bits per second in the largest unit that keeps the number whole.
func bitText(n uint64) string {
	unit := 0
	for ; n >= 1000 && n%1000 == 0 && unit < 3; unit++ {
		n /= 1000
	}
	return fmt.Sprintf("%d%s", n, [...]string{"", "K", "M", "G"}[unit])
}

// checkDefaults rejects a second default.
func (b *treeBuilder) checkDefaults() {
	var first token.Span
	for i := range b.tree.Queues {
		at := b.from[i].Default
		switch {
		case !at.IsValid():
		case first.IsValid():
			b.conflict(at, b.tree.name()+" already has a default queue", first)
		default:
			first = at
		}
	}
}

// hasModem reports whether a root says that a modem is behind its interface.
func hasModem(o *ast.OwnQueue) bool {
	return o.Modem.IsValid() || slices.ContainsFunc(o.Link, func(w ast.Word) bool { return ast.Links[w.Text].Modem })
}

// lowerLink returns what a root says of its line.
func lowerLink(o *ast.OwnQueue) Link {
	if !o.Line.IsValid() {
		return Link{}
	}
	out := Link{Known: true, Cells: ast.Plain}
	for i := range o.Link {
		kind := ast.Links[o.Link[i].Text]
		out.Overhead += int(kind.Overhead)
		out.MPU = max(out.MPU, int(kind.MPU))
		if kind.Cells != ast.AnyCells {
			out.Cells = kind.Cells
		}
	}
	if o.Overhead != nil {
		out.Overhead = int(o.Overhead.N)
	}
	if o.MPU != nil {
		out.MPU = int(o.MPU.N)
	}
	return out
}
