package tune

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"weir/internal/host/irqname"
	"weir/internal/host/proc"
)

// interrupts are those by which a card's queues receive, in the order of the queues.
func (h *Host) interrupts(card string) []int {
	_, all, err := proc.Interrupts(h.path("proc"))
	if err != nil {
		return nil
	}
	c := irqname.Card{Name: card, Device: h.bus(card)}
	if queues, err := h.cardFiles(card, "rps"); err == nil {
		c.Queues = len(queues)
	}
	maps.DeleteFunc(all, func(_ int, name string) bool { return !c.Owns(name) })
	found := c.Receiving(all)
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
