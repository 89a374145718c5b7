package doctor

import (
	"cmp"
	"fmt"
	"slices"

	"weir/internal/host/cpulist"
)

// Kind is the setting that a [Placement] changes.
type Kind string

// Settings that decide which cores work for a queue.
const (
	KindQueues   Kind = "queues"   // number of queues that a card uses: "4"
	KindThreaded Kind = "threaded" // whether the card receives in threads: "0", "1"
	KindIRQ      Kind = "irq"      // cores of an interrupt: "0-3"
	KindThread   Kind = "thread"   // cores of a receiving thread
	KindRPS      Kind = "rps"      // cores that received packets are spread over
	KindXPS      Kind = "xps"      // cores that send through a queue
)

// Placement is one change of the cores that work for a queue.
type Placement struct {
	Kind      Kind   `json:"kind"`
	Interface string `json:"interface"`
	Queue     int    `json:"queue"`
	IRQ       int    `json:"irq,omitempty"`
	From      string `json:"from"` // lists of cores: "0-3"; "": none
	To        string `json:"to"`
	Why       string `json:"why"`
}

// Spread is a plan of which cores work for which queues.
type Spread struct {
	// Queues are the changed numbers of queues. They come first: the link goes down
	// for a moment, and the other changes depend on them.
	Queues []Placement `json:"queues"`
	Places []Placement `json:"places"`
	Notes  []string    `json:"notes,omitempty"`

	keepsQueues bool // cards keep the number of queues they use
}

// PlanSpread plans which cores should work for which queues. It uses the load only if the
// queues' load is known and the cores now serving them do over a quarter more work than
// necessary. A spread that is even enough stays. With keepQueues, no card gets another
// number of queues, and the plan uses the queues that it has.
func PlanSpread(s *Snapshot, keepQueues bool) *Spread {
	v := newView(s)
	p := &Spread{Queues: []Placement{}, Places: []Placement{}, keepsQueues: keepQueues}
	for _, n := range v.nics {
		v.useQueues(p, n)
	}
	moved := v.placeQueues(p)
	for _, n := range v.nics {
		if !p.changesQueues(n) {
			v.placeFlows(p, n, moved)
			v.placeSending(p, n)
		}
	}
	if slices.Contains(v.Services, "irqbalance") && slices.ContainsFunc(p.Places, func(c Placement) bool { return c.Kind == KindIRQ }) {
		p.Notes = append(p.Notes, "irqbalance runs, and will move interrupts again: stop it (systemctl disable --now irqbalance)")
	}
	if why := v.Unreadable["threads"]; why != "" {
		p.Notes = append(p.Notes, "threads that receive stay where they run: "+why)
	}
	return p
}

// changesQueues reports whether a card gets another number of queues. Those queues are planned
// for once they exist.
func (p *Spread) changesQueues(n *nic) bool {
	return slices.ContainsFunc(p.Queues, func(c Placement) bool { return c.Interface == n.Name })
}

// useQueues makes a card use an even share of the cores (RSS-2).
func (v *view) useQueues(p *Spread, n *nic) {
	real := v.realCores()
	if p.keepsQueues || n.virtual || n.Channels == nil || n.Channels.Combined == 0 || real == 0 {
		return
	}
	now, want := n.Channels.Combined, min(n.Channels.MaxCombined, v.queuesFor(n))
	if 2*now > want {
		return // not worth taking the link down
	}
	p.Queues = append(p.Queues, Placement{
		Kind: KindQueues, Interface: n.Name, From: fmt.Sprint(now), To: fmt.Sprint(want),
		Why: fmt.Sprintf("it has %d, and the box has %s", n.maxQueues(), plural(real, "core")),
	})
}

// rearrange is the remedy that applies PlanSpread's plan.
var rearrange = Remedy{Command: "weir affinity auto --confirm 60s", Text: "or let weir choose cores and masks; weir affinity revert undoes it"}

// seat is a queue that can be given a core.
type seat struct {
	nic    *nic
	queue  *queue
	kind   Kind
	weight float64
	from   string
	core   int // core that serves it now; -1: unknown, or not an allowed one
	to     int
}

// moves holds the cores that queues are moved to, by interface and queue.
type moves map[string]map[int]int

// placeQueues gives each queue a core so that no core has more work than necessary.
func (v *view) placeQueues(p *Spread) moves {
	seats := slices.DeleteFunc(v.seats(), func(s seat) bool { return p.changesQueues(s.nic) || v.isFixed(p, s.nic) })
	moved := moves{}
	if len(seats) == 0 {
		return moved
	}
	best, better := v.balance(seats)
	now, settled := map[int]float64{}, true
	for _, s := range seats {
		settled = settled && s.core >= 0
		now[s.core] += s.weight
	}
	if !better || settled && heaviest(now) <= 1.25*best {
		return moved
	}
	for _, s := range seats {
		if s.core == s.to && s.from == fmt.Sprint(s.to) {
			continue
		}
		if moved[s.nic.Name] == nil {
			moved[s.nic.Name] = map[int]int{}
		}
		moved[s.nic.Name][s.queue.n] = s.to
		p.Places = append(p.Places, Placement{
			Kind: s.kind, Interface: s.nic.Name, Queue: s.queue.n, IRQ: s.queue.irq, From: s.from, To: fmt.Sprint(s.to),
			Why: "busy queues apart, on cores of the card's own NUMA node, one hyper-thread of each",
		})
	}
	return moved
}

// isFixed reports whether no core may serve a card, because its node has none or all of
// them are isolated.
func (v *view) isFixed(p *Spread, n *nic) bool {
	if len(v.cpusFor(n)) > 0 {
		return false
	}
	note := n.Name + ": no core of its NUMA node may receive: its queues stay where they are"
	if len(v.CPUs) > 0 && !slices.Contains(p.Notes, note) {
		p.Notes = append(p.Notes, note)
	}
	return true
}

// seats returns the queues with an interrupt, or with a thread bound to one core. The
// scheduler spreads threads that are not bound.
func (v *view) seats() (all []seat) {
	var packets uint64
	for _, n := range v.nics {
		for _, q := range v.placed(n) {
			s := seat{nic: n, queue: q, kind: KindIRQ, core: -1, weight: float64(q.packets)}
			packets += q.packets
			thread, cores := n.thread(q.n), q.cores
			switch {
			case thread != nil:
				if cpus, err := cpulist.Parse(thread.CPUs); err != nil || len(cpus) != 1 {
					continue
				}
				s.kind, s.from = KindThread, thread.CPUs
				cores = []int{thread.core()}
			case q.irq == 0:
				continue
			default:
				s.from = v.affinityOf(q.irq)
			}
			if near := v.cpusFor(n); len(cores) > 0 && slices.Contains(near, cores[0]) {
				s.core = cores[0]
			}
			all = append(all, s)
		}
	}
	for i := range all {
		if all[i].weight++; packets < few {
			all[i].weight = 1 // the difference is chance
		}
	}
	return all
}

func (v *view) affinityOf(irq int) string {
	i := slices.IndexFunc(v.IRQs, func(one IRQ) bool { return one.Number == irq })
	if i < 0 {
		return ""
	}
	return v.IRQs[i].Affinity
}

// balance gives each queue, heaviest first, the least loaded core of its card's node.
// Among equals it prefers the present core, then one that serves few queues. It returns
// the load of the most loaded core.
func (v *view) balance(seats []seat) (most float64, better bool) {
	order := make([]*seat, len(seats))
	for i := range seats {
		order[i] = &seats[i]
	}
	slices.SortStableFunc(order, func(a, b *seat) int { return cmp.Compare(b.weight, a.weight) })
	loads, homes := map[int]float64{}, map[int]int{}
	for i := range seats {
		homes[seats[i].core]++
	}
	for _, s := range order {
		s.to = slices.MinFunc(v.cpusFor(s.nic), func(a, b int) int {
			return cmp.Or(cmp.Compare(loads[a], loads[b]), cmp.Compare(other(a, s.core), other(b, s.core)), cmp.Compare(homes[a], homes[b]), cmp.Compare(a, b))
		})
		loads[s.to] += s.weight
		better = better || s.to != s.core
	}
	return heaviest(loads), better
}

func other(id, core int) int {
	if id == core {
		return 0
	}
	return 1
}

func heaviest(loads map[int]float64) (most float64) {
	for _, load := range loads {
		most = max(most, load)
	}
	return most
}

// handsOver is the number of cores from which on the receiving core hands over all
// packets. Receiving costs about a quarter of forwarding.
const handsOver = 4

// placeFlows lets the stack spread flows (RPS) if a card has few queues for the cores or
// cannot use them: a veth, one queue, PPPoE, one queue that fills its core. It does not
// touch what somebody, or weir before, has set.
func (v *view) placeFlows(p *Spread, n *nic, moved moves) {
	cpus := v.cpusFor(n)
	if len(cpus) < 2 || n.queueCount() == 0 || n.RPS == nil {
		return
	}
	why, only := v.narrowed(p, n, len(cpus), len(moved[n.Name]) > 0)
	if why == "" {
		return
	}
	if n.XDP == "native" && !n.virtual {
		p.Notes = append(p.Notes, fmt.Sprintf("%s: %s, but XDP takes its packets, which RPS does not spread", n.Name, why))
		return
	}
	for queue := range min(n.queueCount(), len(n.RPS)) {
		q := *v.queueOf(n, queue)
		if to, known := moved[n.Name][queue]; known {
			q.cores = []int{to}
		}
		if v.rps(n, queue) == "" && (only == nil || only.n == queue) {
			v.placeRPS(p, n, &q, cpus, why)
		}
	}
}

// narrowed says why a card's queues do not spread its packets, and returns the one queue
// concerned; nil: all.
func (v *view) narrowed(p *Spread, n *nic, cores int, moved bool) (why string, only *queue) {
	q := n.largest()
	uneven := n.isUneven(q) && q.packets >= few
	switch {
	case v.inTunnel(q):
		return "", nil // no hash spreads one tunnel's packets
	case v.carriesPPP(n.Name):
		if uneven {
			only = q
		}
		return "a PPPoE session arrives on one queue", only
	case n.queueCount() == 1:
		return fmt.Sprintf("one queue for %s", plural(cores, "core")), nil
	case n.virtual && uneven:
		return fmt.Sprintf("queue %d carries %s of the packets, and a veth has no hash of its own", q.n, percent(q.share)), q
	case moved:
		return "", nil // the cores' loads will change
	case uneven && slices.Contains(v.spreadable(), v.loaded(q)):
		return fmt.Sprintf("queue %d carries %s of the packets and fills its core", q.n, percent(q.share)), q
	case (p.keepsQueues || n.maxQueues() <= n.queueCount()) && n.fills(v.spreadable()) != nil:
		return fmt.Sprintf("its %s fill their cores", plural(n.queueCount(), "queue")), nil
	}
	return "", nil
}

// inTunnel reports whether a tunnel, by the packets of a queue, fills the core that serves
// the queue.
func (v *view) inTunnel(q *queue) bool {
	if q == nil || len(q.cores) == 0 {
		return false
	}
	return slices.ContainsFunc(v.tunnelsInUse(), func(t *tunnelled) bool {
		c := v.carrier(t)
		return c != nil && c.ID == q.cores[0] && !userSpace[t.Kind]
	})
}

func (v *view) placeRPS(p *Spread, n *nic, q *queue, cpus []int, why string) {
	to := slices.Clone(cpus)
	if len(to) >= handsOver && len(q.cores) > 0 {
		to = slices.DeleteFunc(to, func(id int) bool { return id == q.cores[0] })
	}
	p.Places = append(p.Places, Placement{Kind: KindRPS, Interface: n.Name, Queue: q.n, To: cpulist.Format(to), Why: why})
}

// queueOf returns a receive queue, also if nothing was counted for it.
func (v *view) queueOf(n *nic, number int) *queue {
	return cmp.Or(find(n.queues, func(q *queue) bool { return q.n == number }), &queue{n: number})
}

// placeSending gives each send queue its cores (XPS) if nobody has done so. Otherwise the
// cores contend for a queue's lock.
func (v *view) placeSending(p *Spread, n *nic) {
	if len(n.XPS) < 2 || slices.ContainsFunc(n.XPS, func(list string) bool { return list != "" }) {
		return
	}
	for q := range n.XPS {
		var cpus []int
		for i, c := range v.CPUs {
			if i%len(n.XPS) == q {
				cpus = append(cpus, c.ID)
			}
		}
		if len(cpus) > 0 {
			p.Places = append(p.Places, Placement{Kind: KindXPS, Interface: n.Name, Queue: q, To: cpulist.Format(cpus), Why: "cores do not wait for each other to send"})
		}
	}
}
