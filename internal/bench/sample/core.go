package sample

import "weir/internal/host/proc"

// coreOf returns how a core spent the time between two readings.
func coreOf(id int, now, before proc.Times) Core {
	d := now.Minus(before)
	total := float64(d.Total())
	if total == 0 {
		return Core{ID: id}
	}
	share := func(n uint64) float64 { return float64(n) / total }
	return Core{ID: id, Busy: 1 - share(d.Idle+d.IOWait), Softirq: share(d.Softirq), User: share(d.User + d.Nice), Steal: share(d.Steal)}
}
