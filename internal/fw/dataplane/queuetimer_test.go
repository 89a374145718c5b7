package dataplane

import (
	"testing"
	"time"
)

// A waiter is a TCP connection whose round trip is much shorter than a packet takes at the queue's rate. It doubles its window
// until packets are lost, goes on with as many as got through, and waits for its retransmission timer (RFC 6298, with Linux's
// least time of 200 ms) when none did.
type waiter struct {
	flow
	window  int
	silent  time.Duration // until then
	backoff uint
	passed  int
}

// offer sends what a millisecond has room for: eight round trips.
func (w *waiter) offer(h *queueHarness, at time.Duration) {
	if at < w.silent {
		return
	}
	for range 8 {
		sent := min(w.window, 400)
		passed, _ := h.send(&w.flow, sent)
		w.passed += passed
		switch {
		case passed == sent:
			w.window, w.backoff = 2*sent, 0
		case passed > 0:
			w.window, w.backoff = passed, 0
		default:
			w.silent = at + 204*time.Millisecond<<w.backoff
			w.window = 1
			w.backoff++
			return
		}
	}
}

// In a network of short round trips TCP sends faster than a slow queue with any window, and lives on what it may send after each
// of its timers. It gets the rate, and no more.
func TestQueueShortTrips(t *testing.T) {
	const length, first = 22 * time.Second, 2 * time.Second
	for _, rate := range []uint64{5_000_000, 50_000_000, 500_000_000} {
		for _, n := range []int{1, 4, 40} {
			h := newQueueHarness(t, 1000, oneClass(rate))
			all := make([]waiter, n)
			for i := range all {
				all[i] = waiter{flow: flow{number: uint32(i + 1), host: uint64(i + 1), bytes: 1538}, window: 10, silent: time.Duration(i) * 7 * time.Millisecond}
			}
			start := 0
			for at := time.Duration(0); at < length; at += time.Millisecond {
				if at == first {
					start = passedOf(all)
				}
				for i := range all {
					all[i].offer(h, at)
				}
				h.tick()
			}
			got := float64(passedOf(all)-start) * 1538 * 8 / (length - first).Seconds() / float64(rate)
			t.Logf("%d of them at %d Mbit/s: %.3f of the rate", n, rate/1_000_000, got)
			if got < 0.93 || got > 1.05 { // two packets are more than a share of 5 Mbit/s for 40
				t.Errorf("%d connections at %d Mbit/s have %.3f of the rate; want 0.93 to 1.05", n, rate/1_000_000, got)
			}
		}
	}
}

func passedOf(all []waiter) int {
	sum := 0
	for i := range all {
		sum += all[i].passed
	}
	return sum
}
