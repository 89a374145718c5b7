package doctor

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spreads are the changes that weir affinity auto would make on the test's machines. It
// changes nothing on machines that are not listed.
var spreads = map[string][]string{
	"one-queue-full":   {"rps eth1:3 0-2"},
	"other-queue-full": {"rps eth1:1 0,2-3"},
	"pppoe":            {"rps wan0:0 1-3"},
	"pppoe-two":        {"rps wan0:0 1-3", "rps wan1:0 0,2-3"},
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

	"interrupt-rate":        {"rps eth0:0 1-3"},
	"udp-one-queue":         {"rps eth0:1 0,2-3"},
	"hypervisor-queues":     {"rps ens18:0 1-7"},
	"far-queues-near-cores": {"irq eth0:0 6", "irq eth0:1 5", "irq eth0:2 7"},

	"uncounted":          {"rps eno1:2 0-1,3-7"},
	"pppoe-uncounted":    {"rps eno1:2 0-1,3-7"},
	"xen-one-core":       {"irq eth0:1 1", "irq eth0:2 2", "irq eth0:3 3", "irq eth1:1 1", "irq eth1:2 2", "irq eth1:3 3"},
	"two-cards-one-core": {"irq eth1:0 1", "rps eth0:0 1-3", "rps eth1:0 0,2-3"},
	"hyper-threads":      {"irq eth0:1 4", "irq eth0:3 6"},
	"bad-cable":          {"rps enp6s0:0 1-3", "rps enp7s0:0 0,2-3"},
	"busy-shaped-home":   {"rps wan:0 1-3", "rps lan:0 0,2-3"},
	"busy-ordinary":      {"irq eth1:0 6", "irq eth1:1 4", "irq eth1:2 7", "irq eth1:3 5", "rps modem0:0 0-6"},
}

func TestSpread(t *testing.T) {
	for _, m := range machines {
		want := spreads[m.name]
		t.Run(m.name, func(t *testing.T) {
			p := PlanSpread(m.build().s, false)
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

// TestVethWithoutInterrupts checks that a veth has no interrupts. Interrupts with its
// name belong to another namespace.
func TestVethWithoutInterrupts(t *testing.T) {
	b := newBox(2)
	b.veth("eth0", 1, 900000, 0)
	b.s.IRQs = []IRQ{{Number: 40, Name: "eth0-TxRx-0", Affinity: "1", Effective: "1"}}
	for _, c := range PlanSpread(b.s, false).Places {
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

// words describes each change of a plan in a few words.
func words(p *Spread) (all []string) {
	for _, c := range slices.Concat(p.Queues, p.Places) {
		all = append(all, fmt.Sprintf("%s %s:%d %s", c.Kind, c.Interface, c.Queue, c.To))
	}
	return all
}

// TestSpreadOverNodes checks that cards of two nodes share no core, and that several
// cards with single queues do not either.
func TestSpreadOverNodes(t *testing.T) {
	b := newBox(8).nodes()
	one := 1
	b.card("eth0", "ixgbe", 10000, 4, 4)
	b.card("eth1", "ixgbe", 10000, 4, 4).Node = &one
	b.card("eth2", "r8169", 1000, 1, 1)
	b.card("eth3", "r8169", 1000, 1, 1)
	for i := range b.s.Interfaces {
		n := &b.s.Interfaces[i]
		for q := range n.RxQueues {
			b.serve(n.Name, q, 0)
			n.RPS[q] = "0-7" // only the queues' cores matter here
		}
	}
	p := PlanSpread(b.s, false)
	cores := map[string]map[string]bool{}
	for _, c := range p.Places {
		if cores[c.Interface] == nil {
			cores[c.Interface] = map[string]bool{}
		}
		cores[c.Interface][c.To] = true
	}
	if diff := cmp.Diff(map[string]bool{"4": true, "5": true, "6": true, "7": true}, cores["eth1"]); diff != "" {
		t.Errorf("%s%v", diff, words(p))
	}
	if len(cores["eth0"]) < 3 || cores["eth0"]["4"] || cmp.Diff(cores["eth2"], cores["eth3"]) == "" {
		t.Errorf("%v", words(p))
	}
}

// TestQueuesOfNode checks that cards share the cores of their own node, without the
// isolated ones. A card alone on its node has all of them; two cards on one node have
// half each.
func TestQueuesOfNode(t *testing.T) {
	for _, c := range []struct{ node0, node1, isolated, want int }{{1, 1, 0, 8}, {2, 0, 0, 4}, {2, 2, 0, 4}, {2, 0, 4, 2}, {4, 0, 0, 2}} {
		b := newBox(16).nodes()
		one := 1
		for i := range c.node0 + c.node1 {
			if n := b.card(fmt.Sprintf("eth%d", i), "ice", 25000, 1, 64); i >= c.node0 {
				n.Node = &one
			}
			b.traffic(fmt.Sprintf("eth%d", i), 500, 1000)
		}
		for i := range c.isolated {
			b.s.CPUs[i].Isolated = true
		}
		p := PlanSpread(b.s, false)
		if len(p.Queues) != c.node0+c.node1 {
			t.Errorf("%+v: %+v", c, p.Queues)
		}
		for _, q := range p.Queues {
			if q.To != fmt.Sprint(c.want) {
				t.Errorf("%+v: %s gets %s queues", c, q.Interface, q.To)
			}
		}
	}
}

// TestSpreadWithoutCores checks that a card whose node has no core for it stays where it
// is, whatever else moves.
func TestSpreadWithoutCores(t *testing.T) {
	b := newBox(4).nodes()
	one := 1
	b.card("eth0", "ixgbe", 10000, 2, 2)
	b.card("eth1", "ixgbe", 10000, 2, 2).Node = &one
	b.serve("eth0", 1, 0).serve("eth1", 0, 2).serve("eth1", 1, 2)
	b.s.CPUs[2].Isolated, b.s.CPUs[3].Isolated = true, true
	p := PlanSpread(b.s, false)
	if diff := cmp.Diff([]string{"irq eth0:1 1"}, words(p)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"eth1: no core of its NUMA node may receive: its queues stay where they are"}, p.Notes); diff != "" {
		t.Error(diff)
	}
}

// TestSpreadRPS checks that an RPS setting stays, even if it hands nothing over, and that
// no RPS goes to isolated cores.
func TestSpreadRPS(t *testing.T) {
	b := newBox(4)
	b.card("eth0", "r8169", 1000, 1, 1).RPS[0] = "0"
	b.card("eth1", "r8169", 1000, 1, 1).RPS[0] = "3"
	b.card("eth2", "r8169", 1000, 1, 1)
	b.serve("eth1", 0, 1).serve("eth2", 0, 2)
	b.s.CPUs[3].Isolated = true
	if diff := cmp.Diff([]string{"rps eth2:0 0-2"}, words(PlanSpread(b.s, false))); diff != "" {
		t.Error(diff)
	}
}

// TestSpreadCutsNoQueues checks that queues are only added. A card with one queue per
// core, or an even share of them, is left alone.
func TestSpreadCutsNoQueues(t *testing.T) {
	b := newBox(4)
	for i := range 4 {
		b.card(fmt.Sprintf("eth%d", i), "igb", 1000, 4+4*(i%2), 8)
	}
	if p := PlanSpread(b.s, false); len(p.Queues) > 0 {
		t.Errorf("%+v", p.Queues)
	}
}

// TestSpreadKeepsQueues checks keepQueues: the existing queues get cores, and the stack
// spreads their packets.
func TestSpreadKeepsQueues(t *testing.T) {
	want := map[string][]string{"split": {"rps eth4:0 1-7"}, "apu2-i210": {"rps enp1s0:0 1-3", "rps enp2s0:0 0,2-3"}}
	for _, m := range machines {
		if want[m.name] == nil {
			continue
		}
		if diff := cmp.Diff(want[m.name], words(PlanSpread(m.build().s, true))); diff != "" {
			t.Errorf("%s: %s", m.name, diff)
		}
	}
	b := newBox(4).cores(98, 0, 1)
	b.card("eth0", "ixgbe", 10000, 2, 8)
	b.traffic("eth0", 500, 300000, 300000)
	if diff := cmp.Diff([]string{"rps eth0:0 1-3", "rps eth0:1 0,2-3"}, words(PlanSpread(b.s, true))); diff != "" {
		t.Error(diff)
	}
}
