package doctor

import (
	"fmt"
	"strings"
	"testing"
)

// Receive queues are found by the names that drivers give their interrupts, as they stand
// in /proc/interrupts (sources: nic.go), also where send queues are counted before them.
func TestInterruptsOfQueues(t *testing.T) {
	for _, c := range []struct {
		names []string // of interrupts 0 and on
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
		{[]string{"eth1-TxRx-1"}, [2]int{-1, 0}}, // the other one's was not told
	} {
		i := &Interface{Name: "eth1", Kind: "physical", PCI: &PCI{Address: "0000:00:04.0"}, Channels: &Channels{Combined: 2}}
		v := &view{Snapshot: &Snapshot{}}
		for number, name := range c.names {
			v.IRQs = append(v.IRQs, IRQ{Number: number, Name: name, Interface: "eth1"})
		}
		got := [2]int{-1, -1}
		for q := range got {
			if irq := v.irqOf(i, q); irq != nil {
				got[q] = irq.Number
			}
		}
		if got != c.want {
			t.Errorf("%s: queues have interrupts %v, want %v", fmt.Sprint(c.names), got, c.want)
		}
	}
}

// A bundle's number of queues that no card has makes it unreadable: it is not believed.
func TestBundleQueues(t *testing.T) {
	for count, ok := range map[string]bool{"-4": false, "1000000000000": false, "65536": true} {
		text := fmt.Sprintf(`{"format": "weir-doctor-bundle", "version": 1, "interfaces": [{"name": "eth0", "kind": "physical", "up": true, "rx_queues": %s}]}`, count)
		if _, err := Read(strings.NewReader(text)); (err == nil) != ok {
			t.Errorf("%s queues: %v", count, err)
		}
	}
}
