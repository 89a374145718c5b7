package doctor

import "slices"

// estimated returns the packets of each receive queue if the driver does not count by
// queue. It takes what the core received that gets the queue's interrupt. The kernel's
// own count is exact. Without it, the count of the core's stack is used, if the core
// serves no other card and nothing was handed over (RPS). It returns nil if neither is
// possible.
func (v *view) estimated(i *Interface, received uint64) (packets map[int]uint64, by string) {
	if !v.sampled || i.Kind != "physical" || received == 0 {
		return nil, ""
	}
	cores := map[int][]int{} // queues of each core
	for q := range i.queueCount() {
		irq := v.irqOf(i, q)
		if irq == nil || i.thread(q) != nil {
			return nil, ""
		}
		served := v.served(irq)
		if len(served) != 1 {
			return nil, ""
		}
		cores[served[0]] = append(cores[served[0]], q)
	}
	took, by := v.receivedByCore(i, cores)
	var sum uint64
	for _, n := range took {
		sum += n
	}
	if sum == 0 {
		return nil, ""
	}
	packets = map[int]uint64{}
	for core, queues := range cores {
		for _, q := range queues {
			packets[q] = uint64(float64(took[core]) / float64(sum) * float64(received) / float64(len(queues)))
		}
	}
	return packets, by
}

// receivedByCore returns what these cores received from a card, in any unit, and how this is
// known.
func (v *view) receivedByCore(i *Interface, cores map[int][]int) (took map[int]uint64, by string) {
	took = map[int]uint64{}
	if len(cores) == 1 {
		took[sortedKeys(cores)[0]] = 1 // a single core: any number will do
		return took, "all of them arrive on one core; the driver does not count them by queue"
	}
	if v.Watched != nil && v.Watched.Seconds > 0 {
		for core := range cores {
			took[core] = v.Watched.Cores[core].Received[i.Name].Packets
		}
		return took, "from each core's received packets, counted in the kernel"
	}
	if !v.ownCores(i, cores) {
		return nil, ""
	}
	for core := range cores {
		now, known := v.After.Softnet[core]
		then, before := v.Before.Softnet[core]
		if !known || !before || now.RPS != then.RPS {
			return nil, ""
		}
		took[core] = wrapped(now.Processed, then.Processed)
	}
	return took, "from the packets of each core's stack, because the driver does not count by queue"
}

// ownCores reports whether these cores get no interrupts of other cards.
func (v *view) ownCores(i *Interface, cores map[int][]int) bool {
	own := map[int]bool{}
	for q := range i.queueCount() {
		own[v.irqOf(i, q).Number] = true
	}
	for number, now := range v.After.IRQs {
		if own[number] {
			continue
		}
		for core := range cores {
			if Grown(now[core], v.Before.IRQs[number][core]) > 0 {
				return false
			}
		}
	}
	return true
}

// receivedBy returns what a core received. The kernel's count includes the frames that
// XDP keeps; without it, the stack's count is used.
func (v *view) receivedBy(c *core) (packets uint64) {
	if v.Watched == nil || v.Watched.Seconds <= 0 {
		return c.processed
	}
	for _, received := range v.Watched.Cores[c.ID].Received {
		packets += received.Packets
	}
	return packets
}

// queuesServedBy names the queues whose interrupts come to this core only, whether or not they
// are counted.
func (v *view) queuesServedBy(id int) (names []string) {
	for _, n := range v.nics {
		if n.counted && n.link.RxPackets == 0 {
			continue
		}
		for _, q := range v.placed(n) {
			if slices.Equal(q.cores, []int{id}) {
				names = append(names, place{n, q}.String())
			}
		}
	}
	return names
}
