package dataplane

import (
	"fmt"
	"testing"
	"time"
)

// The kernel releases what has expired, tuples and slots: the table can be
// filled again and again.
func TestSweepReleases(t *testing.T) {
	const limit = 200
	h := newHarness(t, "set limit states 200\nset timeout udp.first 1\n"+masquerade+"pass", func(c *Config) { c.Frozen = false })
	setTimeouts(h.dp.tables.shared, &h.dp.config.Options)
	check(t, h.dp.startSweep())
	for round := range 4 {
		for i := range limit {
			h.dp.Heartbeat()
			r := h.in(h.xdp, "lan", fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53", 1000+i))
			if r.verdict != redirect || r.reason != "rule" {
				t.Fatalf("round %d, connection %d: %s %s", round, i, r.verdict, r.reason)
			}
		}
		if r := h.in(h.xdp, "lan", "udp 192.168.1.10:1 > 198.51.100.9:53"); r.reason != "state-limit" {
			t.Errorf("round %d: one more than the limit: %s %s", round, r.verdict, r.reason)
		}
		h.waitEmpty()
	}
}

// waitEmpty waits until the sweep has released every state.
func (h *harness) waitEmpty() {
	h.tb.Helper()
	s := h.dp.tables.shared
	for until := time.Now().Add(5 * time.Second); s.StatesMade != s.StatesReleased; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			h.tb.Fatalf("%d states made, %d released", s.StatesMade, s.StatesReleased)
		}
	}
	for number := range h.dp.tables.entered(h.tb) {
		h.tb.Fatalf("a tuple of state %d is left", number>>1)
	}
}
