package tune

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"weir/internal/host/irqname"
	"weir/internal/host/proc"
)

// interrupts are those by which a card's queues receive, in the order of the queues.
func (h *Host) interrupts(card string) []int {
	found := h.named(card).Receiving(h.interruptsOf(card))
	var irqs []int
	for _, queue := range slices.Sorted(maps.Keys(found)) {
		irqs = append(irqs, found[queue])
	}
	return irqs
}

// interruptsOf are all interrupts of a card, by number, with their names: those that
// its device lists, and those that are named after it.
func (h *Host) interruptsOf(card string) map[int]string {
	_, all, err := proc.Interrupts(h.path("proc"))
	if err != nil {
		return nil
	}
	c := h.named(card)
	maps.DeleteFunc(all, func(number int, name string) bool {
		_, err := os.Stat(h.path("sys/class/net", card, "device/msi_irqs", strconv.Itoa(number)))
		return err != nil && !c.Owns(name)
	})
	return all
}

// named is what a card's interrupts are named after.
func (h *Host) named(card string) *irqname.Card {
	c := &irqname.Card{Name: card, Device: h.bus(card)}
	if queues, err := h.cardFiles(card, "rps"); err == nil {
		c.Queues = len(queues)
	}
	return c
}

// bus is the name of the device below a card, "" where a recorded tree does not tell.
func (h *Host) bus(card string) string {
	target, err := os.Readlink(h.path("sys/class/net", card, "device"))
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}
