package dataplane

import (
	"testing"
	"time"
)

// A connection that starts as BBR does, by 2.89 times what gets through and whatever it loses,
// gets 1.55 times the rate in any 250 ms at most, and its rate afterwards.
func TestQueueProberAlone(t *testing.T) {
	const rate, length, slot = 50_000_000, 5 * time.Second, 25 * time.Millisecond
	for _, rtt := range []time.Duration{10, 20, 50, 70, 100} {
		h := newQueueHarness(t, 1000, oneClass(rate))
		p := newProber(1, 1, rtt*time.Millisecond)
		var slots []float64
		before := 0
		for at := time.Duration(0); at < length; at += time.Millisecond {
			p.offer(h, at)
			h.tick()
			if (at+time.Millisecond)%slot == 0 {
				slots = append(slots, float64(p.passed-before)*1538*8/slot.Seconds()/rate)
				before = p.passed
			}
		}
		most, all := highest(slots, int(250*time.Millisecond/slot)), float64(p.passed)*1538*8/length.Seconds()/rate
		t.Logf("a round trip of %d ms: highest 250 ms %.2f, %.3f of the rate", rtt, most, all)
		if most > 1.55 || all < 0.97 {
			t.Errorf("a round trip of %d ms: highest 250 ms %.2f, %.3f of the rate; want 1.55 at most, 0.97 at least", rtt, most, all)
		}
	}
}
