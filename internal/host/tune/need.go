package tune

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"weir/internal/host/proc"
)

// unneeded returns why a setting would have no effect on this host now, judged by the
// counter that it is meant to lower. It returns "" if it would have one, or if the
// counter cannot be read.
func (h *Host) unneeded(key string) string {
	switch key {
	case "net.core.netdev_budget":
		if n, ok := h.softnet(squeezed); ok && n == 0 {
			return "no core has exhausted its budget since boot (/proc/net/softnet_stat, third column)"
		}
	case "net.core.netdev_max_backlog":
		if n, ok := h.softnet(dropped); ok && n == 0 {
			return "since boot no packet was dropped because of a full backlog (/proc/net/softnet_stat, second column)"
		}
	case "net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_buckets":
		count, ok := h.number("proc/sys/net/netfilter/nf_conntrack_count")
		most, known := h.number("proc/sys/net/netfilter/nf_conntrack_max")
		if ok && known && count < most/2 {
			return fmt.Sprintf("the kernel tracks %d connections of %d", count, most)
		}
	case "net.ipv4.neigh.default.gc_thresh1", "net.ipv4.neigh.default.gc_thresh2", "net.ipv4.neigh.default.gc_thresh3":
		count, ok := h.neighbours()
		least, known := h.number("proc/sys/net/ipv4/neigh/default/gc_thresh1")
		if ok && known && count < least/2 {
			return fmt.Sprintf("there are %d neighbours, and room for %d before any is removed", count, least)
		}
	}
	return ""
}

// softnet sums a counter of the cores' packet queues.
func (h *Host) softnet(figure func(procfs.SoftnetStat) uint32) (sum uint64, ok bool) {
	queues, err := proc.Softnet(h.path("proc"))
	for _, q := range queues {
		sum += uint64(figure(q))
	}
	return sum, err == nil
}

func squeezed(q procfs.SoftnetStat) uint32 { return q.TimeSqueezed }

func dropped(q procfs.SoftnetStat) uint32 { return q.Dropped }

// neighbours returns the number of entries in the ARP table.
func (h *Host) neighbours() (uint64, bool) {
	text, err := os.ReadFile(h.path("proc/net/arp"))
	lines := strings.Count(string(text), "\n")
	return uint64(max(0, lines-1)), err == nil && lines > 0
}

// number reads a file with a number.
func (h *Host) number(file string) (uint64, bool) {
	n, err := strconv.ParseUint(h.text(file), 10, 64)
	return n, err == nil
}
