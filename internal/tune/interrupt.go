package tune

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"weir/internal/interrupt"
)

// interrupts are those by which a card's queues receive, in the order of the queues.
func (h *Host) interrupts(card string) []int {
	text, err := os.ReadFile(h.path("proc/interrupts"))
	if err != nil {
		return nil
	}
	c := interrupt.Card{Name: card, Device: h.bus(card)}
	if queues, err := h.cardFiles(card, "rps"); err == nil {
		c.Queues = len(queues)
	}
	names := map[int]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		irq, err := strconv.Atoi(strings.TrimSuffix(fields[0], ":"))
		if name := fields[len(fields)-1]; err == nil && c.Owns(name) {
			names[irq] = name
		}
	}
	found := c.Receiving(names)
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
