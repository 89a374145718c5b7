package doctor

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// nic is a physical device that is up, with what it did.
type nic struct {
	*Interface
	link    Link
	counted bool
	virtual bool    // a veth: no bus, no speed, no interrupts
	queues  []queue // that receive, in order; nil where nothing tells
	// estimate is how the queues' packets are known where the driver does not count them.
	estimate string
}

// queue is a receive queue.
type queue struct {
	n       int
	packets uint64
	share   float64 // of the interface's packets
	irq     int     // 0: unknown
	cores   []int   // that serve it, the busiest first
	burden  float64 // of the packets that the first of these takes
	allowed []int   // that its interrupt may go to
}

func newNIC(v *view, i *Interface) nic {
	n := nic{Interface: i, virtual: i.Kind != "physical"}
	if n.virtual {
		apart := *i
		apart.Mbit, apart.MaxMbit = 0, 0 // what a veth says is made up
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
		q := queue{n: id, packets: packets[id]}
		if sum > 0 {
			q.share = float64(q.packets) / float64(sum)
		}
		if irq := v.irqOf(i, id); irq != nil {
			q.irq, q.allowed = irq.Number, irq.allowed()
			q.cores = v.served(irq)
		}
		if thread := i.thread(id); thread != nil {
			q.cores = []int{thread.core()}
		}
		n.queues = append(n.queues, q)
	}
	return n
}

// queueCount is how many receive queues are in use; 0: unknown.
func (i *Interface) queueCount() int {
	if c := i.Channels; c != nil && c.Combined+c.Rx > 0 {
		return c.Combined + c.Rx
	}
	return i.RxQueues
}

// maxQueues is how many receive queues the device has; 0: unknown.
func (i *Interface) maxQueues() int {
	if i.Channels == nil {
		return 0
	}
	return max(i.Channels.MaxCombined, i.Channels.MaxRx)
}

// queuePackets is what each receive queue took between the samples.
func (v *view) queuePackets(i *Interface) map[int]uint64 {
	if !v.sampled {
		return nil
	}
	packets := map[int]uint64{}
	var sum uint64
	for key, now := range v.After.Statistics[i.Name] {
		then, known := v.Before.Statistics[i.Name][key]
		if n, ok := i.rxQueue(key); ok && known {
			packets[n] += grown(now, then)
			sum += grown(now, then)
		}
	}
	if i.Kind == "veth" && sum == 0 {
		return nil // without NAPI nothing is counted by queue
	}
	return packets
}

// thread is what receives from a queue where it is no softirq.
func (i *Interface) thread(queue int) *Thread {
	for _, r := range i.NAPI {
		if r.Queue == queue {
			return r.Thread
		}
	}
	return nil
}

// dropUnused leaves out queues that are not in use: some drivers (ixgbe) count for
// each queue that the card has. Where their number is not known, the last ones that
// never counted anything are taken for such.
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

// countersOf are a card's own counters at the second sample.
func (v *view) countersOf(name string) map[string]uint64 {
	if !v.sampled {
		return nil
	}
	return v.After.Statistics[name]
}

// queueOfIRQ finds a queue's number in an interrupt's name, behind the device's:
// "eth1-TxRx-3", "virtio1-input.0", "mlx5_comp3@pci:…", "ens192-rxtx-2" (vmxnet3),
// "vif0-q1-rx" and, until Linux 4.14, "eth0-q1-rx" (xennet_init_queue of xen-netfront),
// "gve-ntfy-blk5@pci:…" and, until Linux 6.2, "eth%d-ntfy-block.5" (gve_alloc_notify_blocks).
var queueOfIRQ = regexp.MustCompile(`(?i)(?:tx-?rx|rx-?tx|rx|comp|input|queue|fp|ntfy-blk|ntfy-block|-q?)[-_.]?(\d+)(?:@.*|-rx)?$`)

// notifyBlock is the name of a gve's interrupt: one for each send queue that there may be,
// and behind these one for each receive queue (gve_rx_idx_to_ntfy).
var notifyBlock = regexp.MustCompile(`-ntfy-bl(?:oc)?k\.?\d`)

// irqOf is the interrupt of a receive queue. A card without a number in its
// interrupt's name has one queue.
func (v *view) irqOf(i *Interface, queue int) *IRQ {
	if i.Kind == "veth" {
		return nil // one of the same name is a card's of another network namespace
	}
	for _, r := range i.NAPI {
		if k := slices.IndexFunc(v.IRQs, func(irq IRQ) bool { return irq.Number == r.IRQ }); r.Queue == queue && r.IRQ > 0 && k >= 0 {
			return &v.IRQs[k]
		}
	}
	numbered, only := v.irqsOf(i)
	if irq := numbered[firstIRQ(numbered, i.queueCount())+queue]; irq != nil || queue > 0 {
		return irq
	}
	return only
}

// irqsOf are the interrupts by which a card receives, by the numbers in their names,
// and the one without.
func (v *view) irqsOf(i *Interface) (numbered map[int]*IRQ, only *IRQ) {
	numbered = map[int]*IRQ{}
	for k := range v.IRQs {
		irq := &v.IRQs[k]
		rest, ours := i.behindName(irq)
		if !ours {
			continue
		}
		found := queueOfIRQ.FindStringSubmatch(rest)
		switch lower := strings.ToLower(rest); {
		case found == nil && rest == "":
			only = irq
		case found == nil, strings.Contains(lower, "tx") && !strings.Contains(lower, "rx"), strings.Contains(lower, "output"):
		default:
			if n, err := strconv.Atoi(found[1]); err == nil && numbered[n] == nil {
				numbered[n] = irq
			}
		}
	}
	return numbered, only
}

// behindName is what an interrupt's name says behind the card's, if it is the card's.
func (i *Interface) behindName(irq *IRQ) (rest string, ours bool) {
	rest, named := strings.CutPrefix(irq.Name, i.Name)
	if !named {
		_, rest, named = strings.Cut(irq.Name, "-"+i.Name)
	}
	if before, device, found := strings.Cut(irq.Name, "@pci:"); found && i.PCI != nil && device == i.PCI.Address {
		rest, named = "@"+before, true // mlx5 and gve name the card by its place on the bus
	}
	if irq.Interface != i.Name && (irq.Interface != "" || !named || rest != "" && !strings.ContainsAny(rest[:1], "-@_.: ")) {
		return "", false
	}
	if !named {
		rest = irq.Name
	}
	return rest, true
}

// firstIRQ is the number in the name of the first receive queue's interrupt: drivers that
// give send queues interrupts of their own may count on behind them (gve; vmxnet3 with
// share_intr, tg3).
func firstIRQ(numbered map[int]*IRQ, queues int) int {
	numbers := sortedKeys(numbered)
	switch {
	case len(numbers) == 0:
		return 0
	case notifyBlock.MatchString(numbered[numbers[0]].Name):
		return (numbers[len(numbers)-1] + 1) / 2
	case queues == 0, len(numbers) < queues:
		return 0 // not all are known
	}
	return numbers[0]
}

// served are the cores that an interrupt went to, those with a tenth of it or
// more; where it did not come, those that it may go to if these are few.
func (v *view) served(irq *IRQ) (cores []int) {
	counts := map[int]uint64{}
	var sum uint64
	if v.sampled {
		for id, now := range v.After.IRQs[irq.Number] {
			if n := grown(now, v.Before.IRQs[irq.Number][id]); n > 0 {
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

// allowed are the cores that an interrupt may go to, by what the hardware made of
// the list where that is known.
func (irq *IRQ) allowed() []int {
	for _, list := range []string{irq.Effective, irq.Affinity} {
		if ids, err := ParseCPUs(list); err == nil && len(ids) > 0 {
			return ids
		}
	}
	return nil
}

// active are the queues that take a part of the packets that is worth a core.
func (n *nic) active() []*queue {
	var all []*queue
	for i := range n.queues {
		if q := &n.queues[i]; q.share*float64(len(n.queues)) >= 0.25 && q.packets > 0 {
			all = append(all, q)
		}
	}
	return all
}

// largest is the queue with the most packets; nil if none has any.
func (n *nic) largest() *queue {
	var most *queue
	for i := range n.queues {
		if q := &n.queues[i]; q.packets > 0 && (most == nil || q.packets > most.packets) {
			most = q
		}
	}
	return most
}

// burdensome is the part of a core's packets from which on a queue counts as a
// cause of the core's load.
const burdensome = 0.25

// weigh sets how much of its core's packets each queue brings.
func (v *view) weigh() {
	sum := map[int]uint64{}
	each := func(do func(q *queue, core int)) {
		for i := range v.nics {
			for k := range v.nics[i].queues {
				if q := &v.nics[i].queues[k]; len(q.cores) > 0 && q.packets > 0 {
					do(q, q.cores[0])
				}
			}
		}
	}
	each(func(q *queue, core int) { sum[core] += q.packets })
	each(func(q *queue, core int) { q.burden = float64(q.packets) / float64(sum[core]) })
}

// grade is how much a queue's load matters, by the core that serves it. Where
// nobody knows which core that is, a card that brings half of all packets is taken
// for what fills a core.
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

// part is the part of all received packets that a card brings.
func (v *view) part(n *nic) float64 {
	var sum uint64
	for i := range v.nics {
		sum += v.nics[i].link.RxPackets
	}
	if sum == 0 {
		return 0
	}
	return float64(n.link.RxPackets) / float64(sum)
}

// loaded is the core that a queue takes a good part of; nil if it does not, or
// nobody knows which.
func (v *view) loaded(q *queue) *core {
	if q == nil || len(q.cores) == 0 || q.burden < burdensome {
		return nil
	}
	return v.core(q.cores[0])
}

// load is the busiest core that the device takes a good part of.
func (v *view) load(n *nic) *core {
	var most *core
	for i := range n.queues {
		if c := v.loaded(&n.queues[i]); c != nil && (most == nil || c.busy > most.busy) {
			most = c
		}
	}
	return most
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
