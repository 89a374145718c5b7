package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/host/cpulist"
	"weir/internal/units"
)

// place is one active queue with the core that serves it.
type place struct {
	nic   *nic
	queue *queue
}

func (p place) String() string { return fmt.Sprintf("queue %d of %s", p.queue.n, p.nic.Name) }

// places returns the active queues by the core that serves most of their packets. It
// notes cards whose interrupts are unknown as missing.
func (v *view) places(o *outcome) map[int][]place {
	by := map[int][]place{}
	for _, n := range v.nics {
		active := n.active()
		if len(n.queues) == 0 && n.counted && n.link.RxPackets > 0 {
			o.lacks(v, "statistics."+n.Name)
		}
		for _, q := range active {
			if len(q.cores) == 0 {
				o.lacks(v, "irqs of "+n.Name)
				continue
			}
			by[q.cores[0]] = append(by[q.cores[0]], place{n, q})
		}
	}
	return by
}

func names(places []place) string {
	const most = 4 // number of queues to name
	if len(places) > most {
		var cards []string
		for _, p := range places {
			if !slices.Contains(cards, p.nic.Name) {
				cards = append(cards, p.nic.Name)
			}
		}
		return fmt.Sprintf("%d queues of %s", len(places), join(cards))
	}
	words := make([]string, len(places))
	for i, p := range places {
		words[i] = p.String()
	}
	return join(words)
}

// sharedCore looks for a core that serves several busy queues while another core serves
// none.
func sharedCore(v *view) (o outcome) {
	by := v.places(&o)
	free := v.idleCores(by)
	given := map[int]int{}
	for _, id := range sortedKeys(by) {
		c := v.core(id)
		heavy := heavies(by[id])
		if c == nil || len(heavy) < 2 || len(free) == 0 {
			continue
		}
		f := Finding{
			Severity: v.severe(c), Subject: c.name(), core: id, weight: c.busy, bites: true,
			Says:     fmt.Sprintf("%s serves %s, while %s no queue", c.name(), names(heavy), serves(free)),
			Evidence: []string{c.line()},
			Expect:   spreadOver(len(heavy), len(free)+1),
			because:  fmt.Sprintf("it serves %s", names(heavy)),
		}
		for i, p := range heavy {
			if i%(len(free)+1) > 0 { // the cores take turns, beginning with this one
				f.Remedies = append(f.Remedies, move(p, v.nextCore(given, free, p.nic)))
			}
		}
		v.mayReturn(f.Remedies)
		f.Remedies = append(f.Remedies, v.ifFixed(heavy)...)
		f.Remedies = append(f.Remedies, v.ifHosted(heavy)...)
		o.add(f)
	}
	return o
}

// nextCore returns the free core that was given the fewest queues. Among equals it prefers
// the card's node.
func (v *view) nextCore(given map[int]int, free []int, n *nic) int {
	near := v.cpusFor(n)
	to := slices.MinFunc(free, func(a, b int) int {
		return cmp.Or(cmp.Compare(given[a], given[b]), -cmp.Compare(slices.Index(near, a), -1)+cmp.Compare(slices.Index(near, b), -1), cmp.Compare(a, b))
	})
	given[to]++
	return to
}

// heavies returns the queues that matter to the load of the core that serves them all:
// those with a quarter of its packets or, if there are many queues, with half of an even
// share.
func heavies(served []place) []place {
	least := min(burdensome, 0.5/float64(len(served)))
	return slices.DeleteFunc(slices.Clone(served), func(p place) bool { return p.queue.burden < least })
}

func spreadOver(queues, cores int) string {
	if queues <= cores {
		return "each of these queues has a core of its own"
	}
	return fmt.Sprintf("these queues have %d cores", cores)
}

func serves(ids []int) string {
	if len(ids) == 1 {
		return fmt.Sprintf("cpu%d serves", ids[0])
	}
	return fmt.Sprintf("%d cores serve", len(ids))
}

// idleCores returns idle cores that have no queue, and whose hyper-thread has none
// either.
func (v *view) idleCores(by map[int][]place) (ids []int) {
	for _, c := range v.cores {
		taken := len(by[c.ID]) > 0 || c.busy >= working || c.Isolated
		for _, s := range c.Siblings {
			taken = taken || len(by[s]) > 0 || s < c.ID && slices.Contains(ids, s)
		}
		if !taken {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// move returns the command that moves a queue to another core.
func move(p place, to int) Remedy {
	if p.queue.thread {
		return Remedy{Command: fmt.Sprintf("weir affinity set %s:%d=%d", p.nic.Name, p.queue.n, to),
			Text: fmt.Sprintf("the thread that receives %s to cpu%d: it does the work, wherever the interrupt goes", p, to)}
	}
	if p.queue.irq == 0 {
		return Remedy{Command: "grep " + p.nic.Name + " /proc/interrupts", Text: fmt.Sprintf("find the interrupt of %s, and write %d to its smp_affinity_list", p, to)}
	}
	return Remedy{Command: fmt.Sprintf("echo %d > /proc/irq/%d/smp_affinity_list", to, p.queue.irq),
		Text: fmt.Sprintf("%s to cpu%d", p, to)}
}

// ifFixed returns what helps cards with one queue whose interrupt cannot be moved: some
// boards deliver those of all cards to one core, whatever is written.
func (v *view) ifFixed(served []place) (remedies []Remedy) {
	for _, p := range served {
		if p.nic.queueCount() != 1 || p.queue.thread || v.spreads(p.nic, p.queue) {
			continue
		}
		for _, m := range v.spread(p.nic, p.queue) {
			m.Text = "if its interrupt stays where it is, as on some boards: " + m.Text
			remedies = append(remedies, m)
		}
	}
	return remedies
}

// ifHosted says that the host decides how many queues the cards of a guest have, if these have one each.
func (v *view) ifHosted(served []place) []Remedy {
	for _, p := range served {
		if paravirtual[p.nic.Driver] && p.nic.queueCount() == 1 && len(v.cores) > len(v.nics) {
			return []Remedy{{Text: "or give each card more queues: " + moreQueues(p.nic.Driver)}}
		}
	}
	return nil
}

// mayReturn says once, after several moves, what may undo them.
func (v *view) mayReturn(moves []Remedy) {
	if !slices.ContainsFunc(moves, func(m Remedy) bool { return strings.Contains(m.Command, "/proc/irq/") }) || v.Services != nil && !slices.Contains(v.Services, "irqbalance") {
		return
	}
	last, it := &moves[len(moves)-1], "it"
	if len(moves) > 1 {
		it = "them"
	}
	if v.Services == nil {
		last.Text += "; irqbalance, if it runs, may take " + it + " back"
		return
	}
	last.Text += "; irqbalance runs here, and may take " + it + " back (IRQ-4)"
}

// remoteNode looks for cards served by cores of another NUMA node. Each of their packets
// crosses between the sockets.
func remoteNode(v *view) (o outcome) {
	nodes := map[int]int{} // node of each core
	for _, c := range v.CPUs {
		if c.Node != nil {
			nodes[c.ID] = *c.Node
		}
	}
	if len(v.CPUs) == 0 || len(nodes) < len(v.CPUs) {
		o.lacks(v, "cpus.node")
		return o
	}
	if distinct(slices.Collect(maps.Values(nodes))) < 2 {
		o.absent = "the machine has one NUMA node"
		return o
	}
	for _, n := range v.nics {
		if n.Node == nil {
			o.lacks(v, "interfaces."+n.Name+".node")
			continue
		}
		if *n.Node >= 0 {
			v.remote(&o, n, nodes)
		}
	}
	return o
}

// remote weighs queues by their packets, or evenly if none arrived.
func (v *view) remote(o *outcome, n *nic, nodes map[int]int) {
	var far, sum float64
	var lines []string
	queues := v.placed(n)
	for _, q := range queues {
		weight := q.share
		if n.link.RxPackets == 0 || len(n.queues) == 0 {
			weight = 1
		}
		node, known := q.node(nodes)
		if !known {
			continue
		}
		sum += weight
		if node != *n.Node {
			far += weight
		}
		lines = append(lines, fmt.Sprintf("queue %d on cpu%s of node %d", q.n, cpulist.Format(q.where()), node))
	}
	if sum == 0 {
		o.lacks(v, "irqs of "+n.Name)
		return
	}
	share := far / sum
	if share < 0.25 {
		return
	}
	f := Finding{
		Severity: Notice, Subject: n.Name, core: -1, weight: share,
		Says:     fmt.Sprintf("%s sits on NUMA node %d, but cores of another node take %s of its packets", n.Name, *n.Node, percent(share)),
		Evidence: []string{n.Name + ": " + strings.Join(lines, ", ")},
		Expect:   "packets no longer cross between the sockets: fewer misses of the caches, more packets per core",
	}
	if share > 0.6 && v.works(queues) { // irqbalance's even spread is one half
		f.Severity = max(Warning, v.severe(v.load(n)))
	}
	if c := v.load(n); c != nil {
		f.on(c)
		f.because = fmt.Sprintf("%s of the packets of %s cross from node %d", percent(share), n.Name, *n.Node)
	}
	f.Remedies = v.bringNear(n, queues, nodes)
	f.bites = f.Severity > Notice && slices.ContainsFunc(f.Remedies, func(m Remedy) bool { return m.Command != "" })
	o.add(f)
}

// bringNear moves a card's far queues to the cores of its node, each to the one that
// serves the fewest, so that all of them work. If these cores cannot take the whole load,
// the queues stay: a far core is better than none.
func (v *view) bringNear(n *nic, queues []*queue, nodes map[int]int) (remedies []Remedy) {
	near := v.cpusFor(n)
	if len(near) == 0 {
		return []Remedy{{Text: "no core of its node may serve it (isolcpus): put the card into a slot of the other node"}}
	}
	given, needs := map[int]int{}, 0.0
	counted := map[int]bool{}
	for _, q := range queues {
		for _, id := range q.where()[:min(1, len(q.where()))] {
			if slices.Contains(near, id) {
				given[id]++
			}
			if c := v.core(id); c != nil && !counted[id] {
				needs, counted[id] = needs+c.network(), true
			}
		}
	}
	if needs > busy*float64(len(near)) {
		return []Remedy{{Text: fmt.Sprintf("leave the queues where they are: packets need %s cores, and its node has %d; a card for each node, or a node for each direction, uses all cores without crossing", units.Digits(needs, 2), len(near))}}
	}
	for _, q := range queues {
		if node, known := q.node(nodes); known && node != *n.Node {
			to := slices.MinFunc(near, func(a, b int) int { return cmp.Or(cmp.Compare(given[a], given[b]), cmp.Compare(a, b)) })
			given[to]++
			remedies = append(remedies, move(place{n, q}, to))
		}
	}
	v.mayReturn(remedies)
	return remedies
}

// works reports whether packets take more than a little time of a core that serves, or
// may serve, one of these queues.
func (v *view) works(queues []*queue) bool {
	for _, q := range queues {
		for _, id := range q.where() {
			if c := v.core(id); c != nil && c.network() >= quiet {
				return true
			}
		}
	}
	return false
}

// placed returns a card's queues with what is known of their cores, also if the driver
// does not count by queue.
func (v *view) placed(n *nic) (all []*queue) {
	if len(n.queues) > 0 {
		return n.queues
	}
	for i := range n.queueCount() {
		q := &queue{n: i}
		if irq := v.irqOf(n.Interface, i); irq != nil {
			q.irq, q.allowed, q.cores = irq.Number, irq.allowed(), v.served(irq)
		}
		all = append(all, q)
	}
	return all
}

// where returns the cores that serve a queue. If they are unknown, it returns the cores
// that may serve it.
func (q *queue) where() []int {
	if len(q.cores) > 0 {
		return q.cores[:1]
	}
	return q.allowed
}

// node returns the NUMA node of the core that serves a queue, or of all cores that may.
func (q *queue) node(nodes map[int]int) (node int, known bool) {
	for i, id := range q.where() {
		if i > 0 && nodes[id] != node {
			return 0, false
		}
		node, known = nodes[id], true
	}
	return node, known
}

// siblings looks for busy queues on two hyper-threads of one core.
func siblings(v *view) (o outcome) {
	threads := 0
	for _, c := range v.CPUs {
		threads = max(threads, len(c.Siblings))
	}
	switch threads {
	case 0:
		o.lacks(v, "cpus.siblings")
		return o
	case 1:
		o.absent = "the cores have no hyper-threads"
		return o
	}
	by := v.places(&o)
	free := v.idleCores(by)
	given := map[int]int{}
	for _, c := range v.cores {
		for _, s := range c.Siblings {
			other := v.core(s)
			if s <= c.ID || other == nil || len(by[c.ID]) == 0 || len(by[s]) == 0 || len(free) == 0 {
				continue
			}
			o.add(v.sharedUnits(c, other, by, v.nextCore(given, free, by[s][0].nic)))
		}
	}
	return o
}

func (v *view) sharedUnits(c, other *core, by map[int][]place, free int) Finding {
	f := Finding{
		Severity: max(v.severe(c), v.severe(other)), Subject: c.name(), core: c.ID, weight: c.busy + other.busy,
		Says: fmt.Sprintf("%s and %s are hyper-threads of one core and serve %s and %s, while cpu%d's core serves no queue",
			c.name(), other.name(), names(by[c.ID]), names(by[other.ID]), free),
		Evidence: []string{c.line(), other.line()},
		Expect:   "two hyper-threads share one core's units: apart, each queue has all of them",
		because:  fmt.Sprintf("%s and %s, which serve %s and %s, are hyper-threads of one core", c.name(), other.name(), names(by[c.ID]), names(by[other.ID])),
	}
	f.Remedies = []Remedy{move(by[other.ID][0], free)}
	v.mayReturn(f.Remedies)
	return f
}
