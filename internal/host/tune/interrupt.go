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

// interrupts returns a card's receive interrupts in the order of the queues.
func (h *Host) interrupts(card string) []int {
	found := h.named(card).Receiving(h.interruptsOf(card))
	var irqs []int
	for _, queue := range slices.Sorted(maps.Keys(found)) {
		irqs = append(irqs, found[queue])
	}
	return irqs
}

// interruptsOf returns all interrupts of a card with their names: those that its device
// lists, and those named after it.
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

// named returns the names that a card's interrupts may carry.
func (h *Host) named(card string) *irqname.Card {
	c := &irqname.Card{Name: card, Device: h.bus(card)}
	if queues, err := h.cardFiles(card, "rps"); err == nil {
		c.Queues = len(queues)
	}
	return c
}

// bus returns the name of the device below a card, "" if a recorded tree does not have
// it.
func (h *Host) bus(card string) string {
	target, err := os.Readlink(h.path("sys/class/net", card, "device"))
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}
