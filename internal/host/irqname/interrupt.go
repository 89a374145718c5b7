package irqname

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// usb matches the interrupts of USB controllers, which bring the packets of a card on USB.
var usb = regexp.MustCompile(`(?i)^(?:[xeou]hci[-_]hcd|dwc2?_|musb|.*:usb\d+$)`)

// Card has the names that drivers use in a card's interrupts.
type Card struct {
	Name   string // name of the interface
	Device string // name of the device below it: 0000:01:00.0, virtio1, vif-0; "": unknown
	Queues int    // receive queues in use; 0: unknown
}

// numbered finds a queue's number after the card's name in an interrupt's name, and the
// word before it: "eth1-TxRx-3", "virtio1-input.0", "mlx5_comp3@pci:…", "ens192-rxtx-2"
// (vmxnet3), "vif0-q1-rx" and, until Linux 4.14, "eth0-q1-rx" (xennet_init_queue of
// xen-netfront), "gve-ntfy-blk5@pci:…" and, until Linux 6.2, "eth%d-ntfy-block.5"
// (gve_alloc_notify_blocks). bnx2 and others have no word: "eth0-1".
var numbered = regexp.MustCompile(`(?i)(?:(tx-?rx|rx-?tx|rx|comp|input|queue|fp|ch|ntfy-blk|ntfy-block)|[-_:]q?)[-_.]?(\d+)(?:@.*|-rx)?$`)

// notifyBlock matches the name of a gve's interrupt. There is one for each possible send
// queue, followed by one for each receive queue (gve_rx_idx_to_ntfy).
var notifyBlock = regexp.MustCompile(`-ntfy-bl(?:oc)?k\.?\d`)

// Owns reports whether an interrupt is named after the card.
func (c *Card) Owns(name string) bool {
	_, ours := c.behind(name)
	return ours
}

// behind returns the part of an interrupt's name after the card's name, if the interrupt
// is the card's.
func (c *Card) behind(name string) (rest string, ours bool) {
	if before, device, found := strings.Cut(name, "@pci:"); found && device != "" && device == c.Device {
		return "@" + before, true // mlx5 and gve name the card by its bus address
	}
	own := []string{c.Name, c.Device}
	if front, is := strings.CutPrefix(c.Device, "vif-"); is {
		own = append(own, "vif"+front) // Xen's form in interrupt names since Linux 4.14
	}
	for _, n := range own {
		rest, named := strings.CutPrefix(name, n)
		if !named {
			_, rest, named = strings.Cut(name, "-"+n)
		}
		if n != "" && named && (rest == "" || strings.ContainsAny(rest[:1], "-@_: ")) {
			return rest, true
		}
	}
	return name, false
}

// Number returns the queue's number in the name of an interrupt of this card, whether or
// not the name has the card's. ok is false if there is no number, or the interrupt is not
// for receiving.
func (c *Card) Number(name string) (n int, ok bool) {
	n, _, ok = c.number(name)
	return n, ok
}

// number is [Card.Number] with the word before the number, "" for none.
func (c *Card) number(name string) (n int, word string, ok bool) {
	rest, _ := c.behind(name)
	found, lower := numbered.FindStringSubmatch(rest), strings.ToLower(rest)
	if found == nil || strings.Contains(lower, "tx") && !strings.Contains(lower, "rx") || strings.Contains(lower, "output") {
		return 0, "", false
	}
	n, err := strconv.Atoi(found[2])
	return n, found[1], err == nil
}

// Receiving returns the receive interrupts of the card's queues, by queue. names holds
// all its interrupts, by their numbers or places in a list. A card without a number in
// its interrupt's name has one queue.
func (c *Card) Receiving(names map[int]string) map[int]int {
	worded, bare, only := map[int]int{}, map[int]int{}, map[int]int{}
	for _, irq := range slices.Backward(slices.Sorted(maps.Keys(names))) {
		n, word, ok := c.number(names[irq])
		switch rest, _ := c.behind(names[irq]); {
		case ok && word != "":
			worded[n] = irq
		case ok:
			bare[n] = irq
		case rest == "" || usb.MatchString(names[irq]) && c.Queues <= 1:
			only[0] = irq
		}
	}
	found := worded
	switch {
	case len(worded)+len(bare) == 0:
		return only
	case len(worded) == 0:
		found = bare // with others present, it is tg3's for the link
	}
	queues, first := map[int]int{}, c.first(found, names)
	for n, irq := range found {
		if n >= first {
			queues[n-first] = irq
		}
	}
	return queues
}

// first returns the number in the name of the first receive queue's interrupt. If send
// queues have interrupts of their own, drivers may continue their count (gve; vmxnet3
// with share_intr, tg3).
func (c *Card) first(found map[int]int, names map[int]string) int {
	numbers := slices.Sorted(maps.Keys(found))
	switch {
	case len(numbers) == 0:
		return 0
	case notifyBlock.MatchString(names[found[numbers[0]]]):
		return (numbers[len(numbers)-1] + 1) / 2
	case c.Queues == 0, len(numbers) < c.Queues:
		return 0 // some are unknown
	}
	return numbers[0]
}
