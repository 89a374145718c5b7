package irqname

import (
	"fmt"
	"testing"
)

// TestInterruptsOfQueues finds receive queues by the drivers' interrupt names in
// /proc/interrupts (sources: interrupt.go), also if send queues are numbered before them.
func TestInterruptsOfQueues(t *testing.T) {
	for _, c := range []struct {
		names []string // of interrupts 0, 1, …
		want  [2]int   // interrupts of queues 0 and 1
	}{
		{[]string{"eth1-TxRx-0", "eth1-TxRx-1", "eth1"}, [2]int{0, 1}},
		{[]string{"vif0-q0-tx", "vif0-q0-rx", "vif0-q1-tx", "vif0-q1-rx"}, [2]int{1, 3}},
		{[]string{"eth1-q0-tx", "eth1-q0-rx", "eth1-q1-tx", "eth1-q1-rx"}, [2]int{1, 3}},
		{[]string{"eth1-rxtx-0", "eth1-rxtx-1", "eth1-event-2"}, [2]int{0, 1}},
		{[]string{"eth1-tx-0", "eth1-tx-1", "eth1-rx-2", "eth1-rx-3", "eth1-event-4"}, [2]int{2, 3}},
		{[]string{"eth1-tx-0", "eth1-rx-1", "eth1-rx-2"}, [2]int{1, 2}},
		{[]string{"gve-ntfy-blk0@pci:0000:00:04.0", "gve-ntfy-blk1@pci:0000:00:04.0", "gve-ntfy-blk2@pci:0000:00:04.0", "gve-ntfy-blk3@pci:0000:00:04.0", "gve-mgmnt@pci:0000:00:04.0"}, [2]int{2, 3}},
		{[]string{"eth%d-ntfy-block.0", "eth%d-ntfy-block.1", "eth%d-ntfy-block.2", "eth%d-ntfy-block.3"}, [2]int{2, 3}},
		{[]string{"virtio1-config", "virtio1-input.0", "virtio1-output.0", "virtio1-input.1", "virtio1-output.1"}, [2]int{1, 3}},
		{[]string{"mlx5_async0@pci:0000:00:04.0", "mlx5_comp0@pci:0000:00:04.0", "mlx5_comp1@pci:0000:00:04.0"}, [2]int{1, 2}},
		{[]string{"ena-mgmnt@pci:0000:00:04.0", "eth1-Tx-Rx-0", "eth1-Tx-Rx-1"}, [2]int{1, 2}},
		{[]string{"eth1-0", "eth1-txrx-1", "eth1-txrx-2"}, [2]int{1, 2}}, // tg3: the first is the link's
		{[]string{"mana_hwc@pci:0000:00:04.0", "mana_q0@pci:0000:00:04.0", "mana_q1@pci:0000:00:04.0"}, [2]int{1, 2}},
		{[]string{"eth1:q0", "eth1:q1"}, [2]int{0, 1}},
		{[]string{"eth1-ch0", "eth1-ch1"}, [2]int{0, 1}},
		{[]string{"eth1"}, [2]int{0, -1}},
		{[]string{"eth1-TxRx-1", "eth1"}, [2]int{-1, 0}}, // the other one's is unknown
	} {
		card, names := Card{Name: "eth1", Device: "0000:00:04.0", Queues: 2}, map[int]string{}
		for number, name := range c.names {
			names[number] = name
		}
		got := [2]int{-1, -1}
		for queue, number := range card.Receiving(names) {
			if queue < len(got) {
				got[queue] = number
			}
		}
		if got != c.want {
			t.Errorf("%s: queues have interrupts %v, want %v", fmt.Sprint(c.names), got, c.want)
		}
	}
}

// TestOwner checks that an interrupt is a card's if it has the whole name of the
// interface or of the device below it.
func TestOwner(t *testing.T) {
	for _, c := range []struct {
		card, device, irq string
		want              bool
	}{
		{"eth1", "", "eth1", true}, {"eth1", "", "eth1-TxRx-0", true}, {"eth1", "", "i40e-eth1-TxRx-0", true}, {"eth1", "", "eth1:rx-0", true},
		{"eth1", "", "eth10-TxRx-0", false}, {"eth1", "", "veth1-TxRx-0", false}, {"eth1", "", "timer", false},
		{"eth1", "virtio1", "virtio1-input.0", true}, {"eth1", "virtio1", "virtio10-input.0", false},
		{"eth1", "0000:01:00.0", "mlx5_comp0@pci:0000:01:00.0", true}, {"eth1", "0000:01:00.0", "mlx5_comp0@pci:0000:01:00.1", false},
		{"eth1", "0000:01:00.0", "hns3-0000:01:00.0-TxRx-0", true}, {"eth1", "", "mlx5_comp0@pci:", false},
		{"enX0", "vif-0", "vif0-q0-rx", true}, {"enX1", "vif-1", "vif10-q0-rx", false}, {"enX1", "vif-1", "vif1.0-q0-rx", false}, // from another machine
	} {
		card := Card{Name: c.card, Device: c.device}
		if got := card.Owns(c.irq); got != c.want {
			t.Errorf("%q is of %q above %q: %v", c.irq, c.card, c.device, got)
		}
	}
}

// TestUSBControllers checks that the interrupt of a USB controller is that of a card's one
// queue, and not of several.
func TestUSBControllers(t *testing.T) {
	for _, name := range []string{"xhci_hcd", "xhci-hcd:usb4", "ehci_hcd:usb1", "dwc2_hsotg:usb1"} {
		one, two := Card{Name: "eth1", Queues: 1}, Card{Name: "eth1", Queues: 2}
		if got := one.Receiving(map[int]string{30: name}); len(got) != 1 || got[0] != 30 {
			t.Errorf("%s: %v", name, got)
		}
		if got := two.Receiving(map[int]string{30: name}); len(got) != 0 {
			t.Errorf("%s of a card with two queues: %v", name, got)
		}
	}
	if got := (&Card{Name: "eth1", Queues: 1}).Receiving(map[int]string{30: "virtio0-config"}); len(got) != 0 {
		t.Errorf("virtio0-config: %v", got)
	}
}
