package sample

import "weir/internal/host/proc"

// coreTicks is how a core has spent its time since boot, in the unit of /proc/stat.
type coreTicks struct {
	total, idle, softirq, user, steal uint64
}

// softnet holds the counters of a core's receive queue since boot.
type softnet struct{ processed, dropped, squeezed uint64 }

func readCores() (map[int]coreTicks, error) {
	times, err := proc.Cores("/proc")
	if err != nil {
		return nil, err
	}
	cores := map[int]coreTicks{}
	for id, t := range times {
		cores[id] = newCoreTicks(t)
	}
	return cores, nil
}

func newCoreTicks(t proc.Times) coreTicks {
	return coreTicks{total: t.Total(), idle: t.Idle + t.IOWait, softirq: t.Softirq, user: t.User + t.Nice, steal: t.Steal}
}

func readSoftnet() (map[int]softnet, error) {
	all, err := proc.Softnet("/proc")
	if err != nil {
		return nil, err
	}
	queues := map[int]softnet{}
	for id, q := range all {
		queues[id] = softnet{uint64(q.Processed), uint64(q.Dropped), uint64(q.TimeSqueezed)}
	}
	return queues, nil
}

// since returns what a core did since an earlier reading.
func (c coreTicks) since(before coreTicks) (busy, softirq, user, steal float64) {
	total := float64(c.total - before.total)
	if c.total <= before.total {
		return 0, 0, 0, 0
	}
	share := func(now, then uint64) float64 {
		if now < then { // the kernel sometimes corrects idle time backwards
			return 0
		}
		return min(float64(now-then)/total, 1)
	}
	return 1 - share(c.idle, before.idle), share(c.softirq, before.softirq), share(c.user, before.user), share(c.steal, before.steal)
}

func (c coreTicks) plus(o coreTicks) coreTicks {
	return coreTicks{c.total + o.total, c.idle + o.idle, c.softirq + o.softirq, c.user + o.user, c.steal + o.steal}
}

// minus never goes below 0, because the kernel sometimes corrects idle time backwards.
func (c coreTicks) minus(o coreTicks) coreTicks {
	less := func(a, b uint64) uint64 { return a - min(a, b) }
	return coreTicks{less(c.total, o.total), less(c.idle, o.idle), less(c.softirq, o.softirq), less(c.user, o.user), less(c.steal, o.steal)}
}

// since may wrap, because the kernel's counters have 32 bits.
func (s softnet) since(before softnet) softnet {
	return softnet{
		uint64(uint32(s.processed) - uint32(before.processed)),
		uint64(uint32(s.dropped) - uint32(before.dropped)),
		uint64(uint32(s.squeezed) - uint32(before.squeezed)),
	}
}
