package doctor

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spreads are what weir affinity auto would change on the test's machines; on those
// that are not named nothing.
var spreads = map[string][]string{
	"one-queue-full":   {"rps eth1:3 0-2"},
	"other-queue-full": {"rps eth1:1 0,2-3"},
	"pppoe":            {"rps wan0:0 1-3"},
	"wrong-node":       {"irq eth0:0 6", "irq eth0:1 4", "irq eth0:2 7", "irq eth0:3 5"},
	"wrong-node-few":   {"irq p1p1:0 0", "irq p1p1:1 1"},
	"split":            {"queues eth4 4"},
	"apu2-i210":        {"queues enp1s0 2", "queues enp2s0 2"},
	"apu2-i211":        {"rps enp1s0:0 1-3", "rps enp1s0:1 0,2-3"},
	"link-then-core":   {"rps eth0:0 1-3", "rps eth1:0 0,2-3"},
	"two-queues-full":  {"irq eth0:0 2", "irq eth0:1 3", "rps eth1:1 0,2-3"},
	"management-full":  {"rps eth1:3 0-2", "rps mgmt:0 1-3"},
	"threaded-napi":    {"rps eth1:3 0-2"},
	"virtio-one-queue": {"irq ens19:0 0", "rps ens18:0 0,2-3", "rps ens19:0 1-3"},
	"wide":             {"rps ens1f0:17 0-16,18-63"},
	"busy-wide":        {"32 changes"}, // two cards whose queues share 32 of 64 cores
	"veth-queue-full":  {"rps lan0:0 0-1"},
}

func TestSpread(t *testing.T) {
	for _, m := range machines {
		want := spreads[m.name]
		t.Run(m.name, func(t *testing.T) {
			p := PlanSpread(m.build().s)
			var got []string
			for _, c := range slices.Concat(p.Queues, p.Places) {
				where := c.Interface
				if c.Kind != KindQueues {
					where = fmt.Sprintf("%s:%d", c.Interface, c.Queue)
				}
				got = append(got, fmt.Sprintf("%s %s %s", c.Kind, where, c.To))
				if c.From == c.To || c.Why == "" {
					t.Errorf("%+v", c)
				}
			}
			if len(got) > 8 {
				got = []string{fmt.Sprintf("%d changes", len(got))}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A veth has no interrupts: those that are called as it is are another namespace's.
func TestVethWithoutInterrupts(t *testing.T) {
	b := newBox(2)
	b.veth("eth0", 1, 900000, 0)
	b.s.IRQs = []IRQ{{Number: 40, Name: "eth0-TxRx-0", Affinity: "1", Effective: "1"}}
	for _, c := range PlanSpread(b.s).Places {
		if c.Kind == KindIRQ {
			t.Errorf("%+v", c)
		}
	}
	for _, q := range Affinities(b.s).Queues {
		if q.IRQ != 0 {
			t.Errorf("%+v", q)
		}
	}
}
