package tune

import (
	"fmt"
	"slices"

	"weir/internal/host/cpulist"
)

// online returns the cores that run; nil if unknown.
func (h *Host) online() []int {
	cores, err := cpulist.Parse(h.text("sys/devices/system/cpu/online"))
	if err != nil {
		return nil
	}
	return cores
}

// isolated returns the cores that the administrator keeps free of the kernel's work. The
// kernel removes them from a written mask, or refuses the mask.
func (h *Host) isolated() []int {
	var all []int
	for _, name := range []string{"isolated", "nohz_full"} {
		if cores, err := cpulist.Parse(h.text("sys/devices/system/cpu", name)); err == nil {
			all = append(all, cores...)
		}
	}
	return all
}

// workers returns the cores that packets are given to, those nearest to a card first.
func (h *Host) workers(card string) []int {
	near, far := h.nearest(card)
	return append(near, far...)
}

// nearest returns the cores of a card's NUMA node, and the others. It takes one of each
// pair of hyper-threads, and no isolated cores.
func (h *Host) nearest(card string) (near, far []int) {
	local, err := cpulist.Parse(h.text("sys/class/net", card, "device/local_cpulist"))
	isolated := h.isolated()
	usable := slices.DeleteFunc(h.online(), func(core int) bool { return slices.Contains(isolated, core) })
	for _, core := range usable {
		siblings, e := cpulist.Parse(h.text("sys/devices/system/cpu", fmt.Sprintf("cpu%d", core), "topology/thread_siblings_list"))
		first := slices.IndexFunc(siblings, func(s int) bool { return slices.Contains(usable, s) })
		if e == nil && first >= 0 && siblings[first] != core {
			continue // the first of them counts for both
		}
		if err != nil || len(local) == 0 || slices.Contains(local, core) {
			near = append(near, core)
		} else {
			far = append(far, core)
		}
	}
	return near, far
}
