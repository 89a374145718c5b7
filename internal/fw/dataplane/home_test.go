package dataplane

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/fw/limits"
	"weir/internal/fw/state"
)

// Few states lie close together. When half of their homes are taken they get more, and fewer
// again when most have gone. Whatever was made before a change is found after it.
func TestHomes(t *testing.T) {
	const few = limits.HomesLeast / 2 // states that these homes are enough for
	h := newHarness(t, fmt.Sprintf("set limit states %d\n", 4*limits.HomesLeast)+masquerade+"pass", func(c *Config) { c.Frozen = false })
	check(t, h.dp.startGC())
	h.waitClock()
	h.keepAlive()
	h.liveFor(3600)
	tables := h.dp.tables
	port := func(i int) int { return 1000 + i }
	send := func(i int, reason string) {
		t.Helper()
		if r := h.in(h.xdp, "lan", fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53", port(i))); r.verdict != redirect || r.reason != reason {
			t.Fatalf("connection %d: %s %s, want %s", i, r.verdict, r.reason, reason)
		}
	}
	homes := func() uint32 { return atomic.LoadUint32(&tables.shared.Homes) }

	for i := range few {
		send(i, "rule")
	}
	if homes() != limits.HomesLeast {
		t.Fatalf("%d states have %d homes, want %d", few, homes(), limits.HomesLeast)
	}
	var high uint32
	for s := range h.dp.View().States() {
		high = max(high, s.Index)
	}
	if high > limits.HomesLeast+limits.HintProbes {
		t.Errorf("one of %d states is at %d, far behind the homes", few, high)
	}

	send(few, "rule")
	if capacity := stateCapacity(tables.limit()); homes() != capacity {
		t.Fatalf("%d states have %d homes, want %d", few+1, homes(), capacity)
	}
	for i := range few + 1 {
		send(i, "state")
	}

	h.dp.View().KillStates(func(s *state.State) bool {
		from := int(s.Tuple[0].SPort)
		return from >= port(500) && from < port(few)
	})
	for until := time.Now().Add(10 * time.Second); homes() != limits.HomesLeast; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d states have %d homes", h.dp.View().InUse(), homes())
		}
	}
	for i := range 500 {
		send(i, "state")
	}
	send(few, "state") // made when there were more homes
	send(few-1, "rule")
}

// States that come one after the other get some more homes. If many come at once, homes are all over the table.
func TestHomesGrow(t *testing.T) {
	const few, limit = limits.HomesLeast / 2, 250_000
	for lately, want := range map[uint32]uint32{few: limits.HomesLeast * limits.HomesFactor, 0: stateCapacity(limit)} {
		h := newHarness(t, fmt.Sprintf("set limit states %d\npass", limit))
		shared := h.dp.tables.shared
		shared.Homes, shared.StatesMade, shared.StatesLately = limits.HomesLeast, few, lately
		if r := h.in(h.xdp, "lan", "udp 192.168.1.10:1000 > 198.51.100.9:53"); r.reason != "rule" {
			t.Fatalf("%s %s", r.verdict, r.reason)
		}
		if shared.Homes != want {
			t.Errorf("of %d states %d are new: %d homes, want %d", few+1, few+1-lately, shared.Homes, want)
		}
	}
}
