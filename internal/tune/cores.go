package tune

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mostCores bounds what is read of lists and masks.
const mostCores = 8192

// parseCores reads a list of cores as the kernel writes it: 0-3,8.
func parseCores(list string) ([]int, error) {
	var cores []int
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		if err != nil {
			return nil, fmt.Errorf("%q is no list of cores", list)
		}
		to, err := strconv.Atoi(last)
		if err != nil || from < 0 || to < from || to >= mostCores {
			return nil, fmt.Errorf("%q is no list of cores", list)
		}
		for core := from; core <= to; core++ {
			cores = append(cores, core)
		}
	}
	slices.Sort(cores)
	return slices.Compact(cores), nil
}

// parseMask reads a mask of cores as the kernel writes it: groups of 32 bits in
// hexadecimal, the highest first.
func parseMask(mask string) ([]int, error) {
	groups := strings.Split(strings.TrimSpace(mask), ",")
	slices.Reverse(groups)
	var cores []int
	for i, group := range groups {
		bits, err := strconv.ParseUint(group, 16, 32)
		if err != nil {
			return nil, fmt.Errorf("%q is no mask of cores", mask)
		}
		for bit := range 32 {
			if bits&(1<<bit) != 0 {
				cores = append(cores, i*32+bit)
			}
		}
	}
	return cores, nil
}

// formatMask is parseMask's reverse.
func formatMask(cores []int) string {
	groups := []uint32{0}
	for _, core := range cores {
		for core/32 >= len(groups) {
			groups = append(groups, 0)
		}
		groups[core/32] |= 1 << (core % 32)
	}
	text := strconv.FormatUint(uint64(groups[len(groups)-1]), 16)
	for _, group := range slices.Backward(groups[:len(groups)-1]) {
		text += fmt.Sprintf(",%08x", group)
	}
	return text
}

// online are the cores that run; nil where that is not told.
func (h *Host) online() []int {
	cores, err := parseCores(h.text("sys/devices/system/cpu/online"))
	if err != nil {
		return nil
	}
	return cores
}

// isolated are the cores that the administrator keeps free of the kernel's work. The
// kernel takes them out of masks that are written, or refuses the mask.
func (h *Host) isolated() []int {
	var all []int
	for _, name := range []string{"isolated", "nohz_full"} {
		if cores, err := parseCores(h.text("sys/devices/system/cpu", name)); err == nil {
			all = append(all, cores...)
		}
	}
	return all
}

// workers are the cores to which packets are given, the nearest to a card first.
func (h *Host) workers(card string) []int {
	near, far := h.nearest(card)
	return append(near, far...)
}

// nearest are the cores of a card's NUMA node, and the others: one of each pair of
// hyper-threads, and none that is isolated.
func (h *Host) nearest(card string) (near, far []int) {
	local, err := parseCores(h.text("sys/class/net", card, "device/local_cpulist"))
	isolated := h.isolated()
	usable := slices.DeleteFunc(h.online(), func(core int) bool { return slices.Contains(isolated, core) })
	for _, core := range usable {
		siblings, e := parseCores(h.text("sys/devices/system/cpu", fmt.Sprintf("cpu%d", core), "topology/thread_siblings_list"))
		first := slices.IndexFunc(siblings, func(s int) bool { return slices.Contains(usable, s) })
		if e == nil && first >= 0 && siblings[first] != core {
			continue // the first of them works for both
		}
		if err != nil || slices.Contains(local, core) {
			near = append(near, core)
		} else {
			far = append(far, core)
		}
	}
	return near, far
}
