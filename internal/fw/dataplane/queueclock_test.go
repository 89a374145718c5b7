package dataplane

import (
	"fmt"
	"math"
	"testing"
	"time"
)

const (
	queueTick = time.Millisecond
	queueMost = 100 * time.Millisecond // what a run of the timer serves at most
)

// flood returns senders that offer twice a rate together, from two hosts.
func flood(n int, rate float64) (all []*sender) {
	for i := range n {
		all = append(all, &sender{
			flow: flow{number: uint32(i + 1), host: uint64(i % 2), bytes: 1000}, rate: 2 * rate / float64(n), due: 1000 * float64(i) / float64(n),
		})
	}
	return all
}

// offerAt lets senders send for some milliseconds in which the timer does not run. Returns how many bytes have passed.
func offerAt(h *queueHarness, sources []*sender, d time.Duration) (bytes float64) {
	for range d / queueTick {
		h.now += queueTick
		for _, s := range sources {
			before := s.passed
			s.offer(h, 0)
			bytes += float64(s.passed-before) * float64(s.bytes)
		}
	}
	return bytes
}

// A timer that comes late neither opens nor stops the line: what it would have given passes meanwhile, up to 100 ms. What a later one
// has not served is counted.
func TestQueueLateTimer(t *testing.T) {
	for _, gap := range []time.Duration{5, 50, 99, 150, 500} {
		for _, n := range []int{1, 100} {
			t.Run(fmt.Sprintf("%d ms, %d", gap, n), func(t *testing.T) { lateTimer(t, gap*time.Millisecond, n) })
		}
	}
}

func lateTimer(t *testing.T, gap time.Duration, n int) {
	const rate, bytes, rounds, between = 100_000_000, 100_000_000 / 8.0, 20, 50 * time.Millisecond
	h := newQueueHarness(t, 1000, oneClass(rate))
	all := flood(n, rate)
	offerAll(h, 3*time.Second, all)
	before, sum := h.clock(), 0.0
	served := min(gap, queueMost)
	for round := range rounds {
		got := offerAt(h, all, gap)
		sum += got
		// A count may have room for what the flood has not taken before: for a few milliseconds.
		if want := bytes * served.Seconds(); got > want+bytes*0.005+float64(n)*1000 || got < 0.95*want-float64(n)*1000 {
			t.Errorf("round %d: %.0f bytes passed in %v without the timer, want %.0f", round, got, gap, want)
		}
		h.turn()
		for range between / queueTick {
			sum += offerAt(h, all, queueTick)
			h.turn()
		}
	}
	time, after := rounds*(served+between), h.clock()
	part := sum / (bytes * time.Seconds())
	t.Logf("%.4f of the rate", part)
	if part < 0.99 || sum > bytes*time.Seconds()+bytes*0.8 {
		t.Errorf("%.4f of the rate passed in the %v that were served, want at least 0.99, and a count of 0.8 s more at most", part, time)
	}
	if lost, want := after.Lost-before.Lost, uint64(rounds*(gap-served)); lost != want {
		t.Errorf("%d ns are not served, want %d", lost, want)
	}
	if late, want := after.Late-before.Late, uint64(rounds); late != want {
		t.Errorf("%d runs were late, want %d", late, want)
	}
}

// Milliseconds have 32 bits, and begin anew after 49 days: nobody gets more or less then, and all that rests ends.
func TestQueueMillisecondsWrap(t *testing.T) {
	const rate = 50_000_000
	for _, before := range []time.Duration{0, 100, 1000, 3000} {
		t.Run(fmt.Sprintf("%d ms before", before), func(t *testing.T) {
			h := newQueueHarness(t, 1000, oneClass(rate))
			h.now = (7<<32 - before) * time.Millisecond
			h.pass(queueTick)
			gone := &sender{flow: flow{number: 200, host: 8, bytes: 500}, rate: rate / 20} // before that moment
			offerAll(h, before/2*time.Millisecond, []*sender{gone})
			all := flood(8, rate)
			carriesRate(t, h, all, rate, 3*time.Second)
			sparse := &sender{flow: flow{number: 100, host: 9, bytes: 500}, rate: rate / 20}
			offerAll(h, 3*time.Second, append(all, sparse))
			if sparse.passed < sparse.sent {
				t.Errorf("who sends a twentieth loses %d of %d packets", sparse.sent-sparse.passed, sparse.sent)
			}
			for range 20_000 {
				h.tick()
			}
			noneLeft(t, h)
		})
	}
}

// The clock may jump, as when a machine was stopped: what has passed meanwhile is lost, and all goes on with the rate. A moment that
// has been served already, as when two timers meet during a load, brings nothing.
func TestQueueClockJumps(t *testing.T) {
	const rate = 50_000_000
	for _, jump := range []time.Duration{
		time.Second, 65 * time.Second, time.Hour, 50 * 24 * time.Hour, -time.Nanosecond, -time.Millisecond, -50 * time.Millisecond, -time.Hour,
	} {
		t.Run(jump.String(), func(t *testing.T) {
			h := newQueueHarness(t, 1000, oneClass(rate))
			all := flood(8, rate)
			offerAll(h, 3*time.Second, all)
			before := h.clock()
			h.pass(jump)
			if jump > -time.Second && jump < 0 {
				if c := h.clock(); c.Last != before.Last || c.Lost != before.Lost || c.Tick != before.Tick {
					t.Errorf("a moment of before has changed the clock: %+v, before %+v", c, before)
				}
			}
			sparse := &sender{flow: flow{number: 100, host: 9, bytes: 500}, rate: rate / 20}
			for _, s := range all {
				s.sent, s.passed = 0, 0
			}
			const length = time.Second
			offerAll(h, length, append(all, sparse))
			served := min(max(jump, 0), queueMost) + length
			if jump < 0 && jump > -time.Second {
				served += jump // it waits until then
			}
			part := total(append(all, sparse), length) / rate
			t.Logf("%.4f of the rate in %v", part, length)
			if want := served.Seconds() / length.Seconds(); math.Abs(part-want) > 0.02 {
				t.Errorf("%.4f of the rate in %v, want %.4f", part, length, want)
			}
			if sparse.passed < sparse.sent {
				t.Errorf("who sends a twentieth loses %d of %d packets", sparse.sent-sparse.passed, sparse.sent)
			}
			if lost := h.clock().Lost - before.Lost; lost != uint64(max(jump-queueMost, 0)) {
				t.Errorf("%d ns are not served after a jump of %v", lost, jump)
			}
		})
	}
}
