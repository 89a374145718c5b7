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
	for _, c := range []struct {
		rate  uint64
		n     int
		rtt   time.Duration // of the class
		least float64
	}{
		{5_000_000, 1, 0, 0.93}, {5_000_000, 4, 0, 0.93}, {5_000_000, 40, 0, 0.93},
		{50_000_000, 1, 0, 0.93}, {50_000_000, 4, 0, 0.93}, {50_000_000, 40, 0, 0.93},
		{500_000_000, 1, 0, 0.93}, {500_000_000, 4, 0, 0.93}, {500_000_000, 40, 0, 0.93},
		{50_000_000, 4, 300 * time.Millisecond, 0.97}, {50_000_000, 4, time.Second, 0.97},
	} {
		got := waiting(t, c.rate, c.n, c.rtt)
		t.Logf("%d of them at %d Mbit/s, rtt %s: %.3f of the rate", c.n, c.rate/1_000_000, c.rtt, got)
		if got < c.least || got > 1.05 { // two packets are more than a share of 5 Mbit/s for 40
			t.Errorf("%d connections at %d Mbit/s, rtt %s, have %.3f of the rate; want %.2f to 1.05", c.n, c.rate/1_000_000, c.rtt, got, c.least)
		}
	}
}

// waiting returns which part of a rate n waiters get in a class. rtt 0: its default.
func waiting(t *testing.T, rate uint64, n int, rtt time.Duration) float64 {
	const length, first = 22 * time.Second, 2 * time.Second
	s := oneClass(rate)
	s.Classes[0].RTT = rtt
	h := newQueueHarness(t, 1000, s)
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
	return float64(passedOf(all)-start) * 1538 * 8 / (length - first).Seconds() / float64(rate)
}

func passedOf(all []waiter) int {
	sum := 0
	for i := range all {
		sum += all[i].passed
	}
	return sum
}
