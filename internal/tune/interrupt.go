package tune

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// queueNames are the names under which drivers ask for the interrupt by which a queue
// receives. CARD is the interface, BUS the device below it (virtio3, 0000:01:00.0).
var queueNames = []string{
	`^(?:[a-z0-9_]+-)?CARD-(?:TxRx-|rx-|Rx-|rxtx-|fp-|ch|rx|)([0-9]+)$`, // ixgbe, igb, i40e, ice, igc, bnxt, …
	`^BUS-input\.([0-9]+)$`,                   // virtio_net
	`^mlx[45]_(?:comp)?([0-9]+)@pci:BUS$`,     // mlx5, mlx4
	`^ena-.*-CARD-Tx-Rx-([0-9]+)$`,            // ena
	`^CARD(?:-Tx-Rx-|-q|:q)([0-9]+)(?:-rx)?$`, // ena, xen-netfront, …
}

// interrupts are those by which a card's queues receive, in the order of the queues.
func (h *Host) interrupts(card string) []int {
	text, err := os.ReadFile(h.path("proc/interrupts"))
	if err != nil {
		return nil
	}
	var forms []*regexp.Regexp
	for _, name := range queueNames {
		if strings.Contains(name, "BUS") && h.bus(card) == "" {
			continue
		}
		name = strings.ReplaceAll(name, "CARD", regexp.QuoteMeta(card))
		forms = append(forms, regexp.MustCompile(strings.ReplaceAll(name, "BUS", regexp.QuoteMeta(h.bus(card)))))
	}
	found := map[int]int{} // by queue
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		irq, err := strconv.Atoi(strings.TrimSuffix(fields[0], ":"))
		if err != nil {
			continue
		}
		for _, form := range forms {
			if m := form.FindStringSubmatch(fields[len(fields)-1]); m != nil {
				if queue, err := strconv.Atoi(m[1]); err == nil {
					found[queue] = irq
				}
			}
		}
	}
	var irqs []int
	for _, queue := range slices.Sorted(maps.Keys(found)) {
		irqs = append(irqs, found[queue])
	}
	return irqs
}

// bus is the name of the device below a card, "" where a recorded tree does not tell.
func (h *Host) bus(card string) string {
	target, err := os.Readlink(h.path("sys/class/net", card, "device"))
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}
