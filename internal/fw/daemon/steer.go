package daemon

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/internal/host/proc"
)

// steer chooses the core that goes on with the packets of each tree that the kernel holds, if the
// daemon is to do that. A tree keeps its core.
func (b *box) steer(now map[int]*held, engines []rundir.Engine) {
	cores := steerable()
	if !b.cfg.Steer || len(cores) < 2 {
		return
	}
	trees := slices.SortedFunc(maps.Values(now), func(x, y *held) int { return cmp.Compare(x.tree, y.tree) })
	kept := make(map[string]int)
	for _, h := range trees {
		name := b.rules.program.Shapers[h.tree].Name()
		if core, is := b.cores[name]; is && slices.Contains(cores, core) {
			kept[name] = core
		}
	}
	for _, h := range trees {
		name := b.rules.program.Shapers[h.tree].Name()
		if _, is := kept[name]; !is {
			kept[name] = leastUsed(cores, kept)
		}
		h.core = kept[name] + 1
		engines[h.tree].Core = fmt.Sprint(kept[name])
	}
	b.cores = kept
}

// leastUsed returns the first of the cores that have the fewest trees.
func leastUsed(cores []int, of map[string]int) int {
	trees := make(map[int]int)
	for _, core := range of {
		trees[core]++
	}
	return slices.MinFunc(cores, func(x, y int) int { return cmp.Compare(trees[x], trees[y]) })
}

// steerable returns the cores that may go on with packets: those of this process. Those that have
// received the fewest packets are first.
func steerable() (cores []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	for core := range dataplane.MostHeldCore + 1 {
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	softirqs, err := proc.NetSoftirqs("/proc")
	if err != nil { // then any is as good
		return cores
	}
	slices.SortStableFunc(cores, func(x, y int) int {
		return cmp.Compare(softirqs["NET_RX"][x], softirqs["NET_RX"][y])
	})
	return cores
}
