package dataplane

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/vishvananda/netns"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
)

// Two cores see the first packets of the same connections at the same time, and
// connections that want the same few ports. The loser leaves nothing behind.
func TestCreationRace(t *testing.T) {
	for name, rules := range map[string]string{
		"translated":     "match out on wan0 inet nat-to (wan0) port 6000:9999\npass",
		"not translated": "pass",
	} {
		t.Run(name, func(t *testing.T) { raceForStates(t, rules) })
	}
}

func raceForStates(t *testing.T, rules string) {
	t.Helper()
	const connections = 20000
	if runtime.NumCPU() < 2 {
		t.Log("with one core nothing races; the invariants hold all the same")
	}
	h := newHarness(t, "set limit states 50000\n"+rules)
	h.onTwoCPUs(func(_ int) error {
		return h.shootAll(connections)
	})
	t.Logf("%d states were made twice", h.dp.tables.shared.StatesMade-connections)
	h.checkTuples(connections)
}

// onTwoCPUs runs something on two CPUs at the same time, in the harness's network namespace.
func (h *harness) onTwoCPUs(do func(cpu int) error) {
	h.tb.Helper()
	h.program(entryXDP.name) // not loaded by both at once
	inside := must(netns.Get())(h.tb)
	defer inside.Close()
	var group errgroup.Group
	for cpu := range 2 {
		group.Go(func() error {
			runtime.LockOSThread() // never unlocked: the thread ends here
			if err := netns.Set(inside); err != nil {
				return err
			}
			var set unix.CPUSet
			set.Set(cpu % runtime.NumCPU())
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				return fmt.Errorf("stay on CPU %d: %w", cpu, err)
			}
			return do(cpu)
		})
	}
	check(h.tb, group.Wait())
}

// shootAll sends the first packet of that many connections.
func (h *harness) shootAll(connections int) error {
	p := parsePkt("udp 192.168.1.10:1000 > 198.51.100.9:53")
	for i := range connections {
		dst := p.dst.Addr().As4()
		dst[3] = byte(i / 3000) // so that there are ports for all
		text := fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.%d:53", 1000+i, dst[3])
		frame := parsePkt(text).frame(lanHostMAC, lan0MAC)
		_, err := bpfload.RunXDP(h.program("weir_xdp"), bpfload.Run{Frame: frame, Ifindex: h.net.lan0})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkTuples checks that each connection has one live state, that its tuples lead to it,
// and that there are no other tuples.
func (h *harness) checkTuples(connections int) {
	h.tb.Helper()
	live := make(map[xdpTuple]uint32) // both tuples of every live state
	states := 0
	for i := range h.dp.View().live() {
		s := &h.dp.tables.states[i]
		for direction, tuple := range []xdpTuple{s.Forth.Tuple, s.Back.Tuple} {
			if other, taken := live[tuple]; taken {
				h.tb.Errorf("states %d and %d both have %+v", other>>1, i, tuple.decode())
			}
			live[tuple] = i<<1 | uint32(direction)
		}
		states++
	}
	if states != connections {
		h.tb.Errorf("%d live states of %d connections", states, connections)
	}
	for tuple, number := range live {
		if owner := h.dp.tables.owner(&tuple, h.dp.ledger.HashSeed); owner != number {
			h.tb.Errorf("%+v leads to state %d, not %d", tuple.decode(), owner>>1, number>>1)
		}
	}
	for number, tuple := range h.dp.tables.entered(h.tb) {
		// the garbage collection removes what a loser has entered
		if owner, ok := live[tuple]; !ok && h.dp.tables.states[number>>1].Status == statusLive || ok && owner != number {
			h.tb.Errorf("%+v leads to state %d, not %d", tuple.decode(), number>>1, owner>>1)
		}
	}
}
