package doctor

import (
	"cmp"
	"maps"
	"slices"

	"weir/internal/host/cpulist"
	"weir/internal/host/irqname"
)

// nic is a physical device that is up, with its traffic.
type nic struct {
	*Interface
	link    Link
	counted bool
	virtual bool     // a veth: no bus, no speed, no interrupts
	queues  []*queue // receive queues, in order; nil: unknown
	// estimate says how the queues' packets are known if the driver does not count
	// them.
	estimate string
}

// queue is a receive queue.
type queue struct {
	n       int
	packets uint64
	share   float64 // its share of the interface's packets
	irq     int     // 0: unknown
	cores   []int   // cores that serve it, busiest first
	burden  float64 // its share of the packets of the first of these cores
	allowed []int   // cores that its interrupt may go to
	thread  bool    // a thread receives, whatever core gets the interrupt
}

func newNIC(v *view, i *Interface) *nic {
	n := &nic{Interface: i, virtual: i.Kind != "physical"}
	if n.virtual {
		apart := *i
		apart.Mbit, apart.MaxMbit = 0, 0 // a veth's speed is made up
		n.Interface = &apart
	}
	n.link, n.counted = v.link(i.Name)
	packets := v.queuePackets(i)
	v.dropUnused(i, packets)
	if len(packets) == 0 && n.counted && i.queueCount() == 1 {
		packets = map[int]uint64{0: n.link.RxPackets}
	}
	if len(packets) == 0 {
		packets, n.estimate = v.estimated(i, n.link.RxPackets)
	}
	var sum uint64
	for _, p := range packets {
		sum += p
	}
	for _, id := range slices.Sorted(maps.Keys(packets)) {
		q := &queue{n: id, packets: packets[id]}
		if sum > 0 {
			q.share = float64(q.packets) / float64(sum)
		}
		if irq := v.irqOf(i, id); irq != nil {
			q.irq, q.allowed = irq.Number, irq.allowed()
			q.cores = v.served(irq)
		}
		if thread := i.thread(id); thread != nil {
			q.cores, q.thread = []int{thread.core()}, true
		}
		n.queues = append(n.queues, q)
	}
	return n
}

// queueCount returns the number of receive queues in use; 0: unknown.
func (i *Interface) queueCount() int {
	if c := i.Channels; c != nil && c.Combined+c.Rx > 0 {
		return c.Combined + c.Rx
	}
	return i.RxQueues
}

// maxQueues returns the number of receive queues that the device has; 0: unknown.
func (i *Interface) maxQueues() int {
	if i.Channels == nil {
		return 0
	}
	return max(i.Channels.MaxCombined, i.Channels.MaxRx)
}

// queuePackets returns the packets of each receive queue between the samples.
func (v *view) queuePackets(i *Interface) map[int]uint64 {
	if !v.sampled {
		return nil
	}
	packets := map[int]uint64{}
	var sum uint64
	for key, now := range v.After.Statistics[i.Name] {
		then, known := v.Before.Statistics[i.Name][key]
		if n, ok := i.rxQueue(key); ok && known {
			packets[n] += Grown(now, then)
			sum += Grown(now, then)
		}
	}
	if i.Kind == "veth" && sum == 0 {
		return nil // without NAPI, veth does not count by queue
	}
	return packets
}

// thread returns the thread that receives from a queue; nil: softirq does.
func (i *Interface) thread(queue int) *Thread {
	if k := slices.IndexFunc(i.NAPI, func(r NAPI) bool { return r.Queue == queue }); k >= 0 {
		return i.NAPI[k].Thread
	}
	return nil
}

// dropUnused removes queues that are not in use, because some drivers (ixgbe) count for
// each queue of the card. If the number in use is unknown, the last queues that never
// counted anything count as unused.
func (v *view) dropUnused(i *Interface, packets map[int]uint64) {
	if count := i.queueCount(); count > 0 {
		maps.DeleteFunc(packets, func(n int, grew uint64) bool { return n >= count && grew == 0 })
		return
	}
	ever := map[int]bool{}
	for key, now := range v.countersOf(i.Name) {
		if n, ok := i.rxQueue(key); ok && now > 0 {
			ever[n] = true
		}
	}
	last := -1
	for n := range ever {
		last = max(last, n)
	}
	if last >= 0 {
		maps.DeleteFunc(packets, func(n int, _ uint64) bool { return n > last })
	}
}

// countersOf returns a card's own counters at the second sample.
func (v *view) countersOf(name string) map[string]uint64 {
	if !v.sampled {
		return nil
	}
	return v.After.Statistics[name]
}

// irqOf returns the interrupt of a receive queue; nil: unknown.
func (v *view) irqOf(i *Interface, queue int) *IRQ {
	if i.Kind == "veth" {
		return nil // an interrupt of that name belongs to another network namespace's card
	}
	for _, r := range i.NAPI {
		if k := slices.IndexFunc(v.IRQs, func(irq IRQ) bool { return irq.Number == r.IRQ }); r.Queue == queue && r.IRQ > 0 && k >= 0 {
			return &v.IRQs[k]
		}
	}
	card, names := i.card(), map[int]string{}
	for k := range v.IRQs {
		if irq := &v.IRQs[k]; irq.Interface == i.Name || irq.Interface == "" && card.Owns(irq.Name) {
			names[k] = irq.Name
		}
	}
	if k, found := card.Receiving(names)[queue]; found {
		return &v.IRQs[k]
	}
	return nil
}

// card returns the names that its interrupts may carry.
func (i *Interface) card() irqname.Card {
	c := irqname.Card{Name: i.Name, Queues: i.queueCount()}
	if i.PCI != nil {
		c.Device = i.PCI.Address
	}
	return c
}

// served returns the cores that got a tenth or more of an interrupt. If it did not occur,
// it returns the cores allowed for it, if they are few.
func (v *view) served(irq *IRQ) (cores []int) {
	counts := map[int]uint64{}
	var sum uint64
	if v.sampled {
		for id, now := range v.After.IRQs[irq.Number] {
			if n := Grown(now, v.Before.IRQs[irq.Number][id]); n > 0 {
				counts[id] = n
				sum += n
			}
		}
	}
	for id, n := range counts {
		if n*10 >= sum {
			cores = append(cores, id)
		}
	}
	if len(cores) > 0 {
		slices.SortFunc(cores, func(a, b int) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
		return cores
	}
	if ids := irq.allowed(); len(ids) == 1 {
		return ids
	}
	return nil
}

// allowed returns the cores that an interrupt may go to. If known, this is the list that
// the hardware made of the setting.
func (irq *IRQ) allowed() []int {
	for _, list := range []string{irq.Effective, irq.Affinity} {
		if ids, err := cpulist.Parse(list); err == nil && len(ids) > 0 {
			return ids
		}
	}
	return nil
}

// active returns the queues with enough packets to be worth a core.
func (n *nic) active() []*queue {
	least := 0.25 / float64(len(n.queues))
	return slices.DeleteFunc(slices.Clone(n.queues), func(q *queue) bool { return q.share < least || q.packets == 0 })
}

// largest returns the queue with the most packets; nil if none has any.
func (n *nic) largest() *queue {
	var most *queue
	for _, q := range n.queues {
		if q.packets > 0 && (most == nil || q.packets > most.packets) {
			most = q
		}
	}
	return most
}

// burdensome is the share of a core's packets above which a queue counts as a cause of
// the core's load.
const burdensome = 0.25

// setShares sets each queue's share of its core's packets.
func (v *view) setShares() {
	sum := map[int]uint64{}
	each := func(do func(q *queue, core int)) {
		for _, n := range v.nics {
			for _, q := range n.queues {
				if len(q.cores) > 0 && q.packets > 0 {
					do(q, q.cores[0])
				}
			}
		}
	}
	each(func(q *queue, core int) { sum[core] += q.packets })
	each(func(q *queue, core int) { q.burden = float64(q.packets) / float64(sum[core]) })
}

// grade says how much a queue's load matters, by the core that serves it. If that core is
// unknown, a card with half of all packets is assumed to fill a core.
func (v *view) grade(n *nic, q *queue) (*core, Severity) {
	if q != nil && len(q.cores) > 0 {
		c := v.loaded(q)
		return c, v.severe(c)
	}
	if q != nil && len(v.spreadable()) > 0 && v.part(n) >= 0.5 {
		return nil, v.critical()
	}
	return nil, Notice
}

// received returns the packets that all devices received.
func (v *view) received() (sum uint64) {
	for _, n := range v.nics {
		sum += n.link.RxPackets
	}
	return sum
}

// part returns a card's share of all received packets.
func (v *view) part(n *nic) float64 {
	return float64(n.link.RxPackets) / float64(max(v.received(), 1))
}

// isUneven reports whether a queue carries so much more than an even share of a card's
// packets that spreading is worthwhile.
func (n *nic) isUneven(q *queue) bool {
	return q != nil && len(n.queues) > 1 && q.share*float64(len(n.queues)) >= unequal
}

// loaded returns the core that spends a good part of its time on a queue; nil if there is
// none, or it is unknown.
func (v *view) loaded(q *queue) *core {
	if q == nil || len(q.cores) == 0 || q.burden < burdensome {
		return nil
	}
	return v.core(q.cores[0])
}

// load returns the busiest core that spends a good part of its time on the device.
func (v *view) load(n *nic) *core {
	var most *core
	for _, q := range n.queues {
		if c := v.loaded(q); c != nil && (most == nil || c.busy > most.busy) {
			most = c
		}
	}
	return most
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
