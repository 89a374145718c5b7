package dataplane

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"weir/internal/fw/shaper"
)

// CUBIC gets what a sparse stream of another host leaves, also if that comes and goes: what it may send at once follows from what it
// gets, not from the number of connections.
func TestQueueCubicBesideSparse(t *testing.T) {
	const rate, length = 50_000_000, 20 * time.Second
	for _, c := range []struct {
		name    string
		streams int
		rtt     time.Duration
		pause   time.Duration // of the streams, after each as long
	}{
		{"one, 50 ms", 1, 50, 0}, {"one, 100 ms", 1, 100, 0}, {"three, 50 ms", 3, 50, 0}, {"one that comes and goes", 1, 50, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newQueueHarness(t, 1000, oneClass(rate))
			f := newCubic(1, 1, c.rtt*time.Millisecond)
			var sparse []*sender
			for i := range c.streams {
				sparse = append(sparse, &sender{flow: flow{number: uint32(i + 2), host: uint64(i + 2), bytes: 200}, rate: 400_000, due: float64(i) * 60})
			}
			for at := time.Duration(0); at < length; at += time.Millisecond {
				f.offer(h, at)
				for _, s := range sparse {
					if c.pause == 0 || at%(2*c.pause) < c.pause {
						s.offer(h, at)
					}
				}
				h.tick()
			}
			left := 1 - total(sparse, length)/rate
			part := float64(f.passed) * 1538 * 8 / length.Seconds() / rate / left
			t.Logf("%.3f of what is left, %.2f %% lost", part, 100*float64(f.lost)/float64(f.lost+f.passed))
			if part < 0.94 || part > 1.03 {
				t.Errorf("CUBIC has %.3f of what sparse streams leave", part)
			}
			for _, s := range sparse {
				if s.passed < s.sent {
					t.Errorf("a sparse stream lost %d of %d packets, the last at %v", s.sent-s.passed, s.sent, s.last)
				}
			}
		})
	}
}

// sameSet returns numbers of connections whose counters are looked for in the same set of the table.
func sameSet(slots uint32, n int) (all []uint32) {
	set := func(number uint32) uint32 {
		return number << 1 & (slots - 1) &^ (queueWays - 1)
	}
	for number := uint32(1); len(all) < n; number++ {
		if set(number) == set(1) {
			all = append(all, number)
		}
	}
	return all
}

// queueWays is QUEUE_WAYS.
const queueWays = 8

// As many connections as a set of the table has places have a count of their own each, and the same share. Further ones share one count, and so
// one share. The line carries its rate.
func TestQueueCollisions(t *testing.T) {
	const rate, length = 50_000_000, 5 * time.Second
	for _, n := range []int{queueWays, 2 * queueWays} {
		s := oneClass(rate)
		s.Classes[0].Fair = shaper.FairFlow
		h := newQueueHarness(t, 1000, s)
		var all []*sender
		for i, number := range sameSet(leastQueueSlots, n) {
			// the first ones come first, so they take the places
			all = append(all, &sender{flow: flow{number: number, host: 1, bytes: 1000}, rate: rate, from: time.Duration(i) * time.Millisecond})
		}
		for range 3 { // three times: the last has settled
			for _, s := range all {
				s.sent, s.passed = 0, 0
			}
			offerAll(h, length, all)
		}
		want := float64(min(n, queueWays+1))
		var own []float64
		for _, s := range all[:queueWays] {
			own = append(own, s.passedRate(length)/rate)
		}
		others := total(all[queueWays:], length) / rate
		shared := h.classes()[1].Shared
		t.Logf("%d connections: each has %.4f, the others together %.4f; %d packets shared a count", n, own, others, shared)
		for _, v := range own {
			if math.Abs(v-1/want) > 0.02/want {
				t.Errorf("of %d connections one has %.4f of the rate, want %.4f", n, v, 1/want)
			}
		}
		if n > queueWays && math.Abs(others-1/want) > 0.05/want {
			t.Errorf("those without a count have %.4f of the rate, want %.4f", others, 1/want)
		}
		if (shared > 0) != (n > queueWays) {
			t.Errorf("%d connections: %d packets shared a count", n, shared)
		}
		if carried := total(all, length) / rate; carried < 0.99 || carried > 1.01 {
			t.Errorf("the line carries %.4f of its rate", carried)
		}
	}
}

func (h *queueHarness) classes() (all []xdpQueueClass) {
	check(h.tb, changeArray(h.objects.Maps[mapQueueClasses], func(raw []xdpQueueClass) { all = append(all, raw...) }))
	return all
}

// A class with burst has that rate while its busy period is young, and again after it has rested as long.
func TestQueueBurstFor(t *testing.T) {
	const line, rate, burst, most = 100_000_000, 10_000_000, 40_000_000, 2 * time.Second
	h := newQueueHarness(t, 1000, shaper.Shaper{Interface: "wan0", Link: shaper.Link{Known: true}, Classes: []shaper.Class{
		{Name: "line", Parent: -1, Weight: 1, Max: shaper.Rate{Bytes: line / 8}, First: 1, Children: 2},
		{Name: "a", Weight: 1, Max: shaper.Rate{Bytes: rate / 8, Burst: burst / 8, For: most}},
		{Name: "b", Weight: 1, Default: true},
	}})
	var all []*sender
	for i := range 8 {
		all = append(all, &sender{flow: flow{number: uint32(i + 1), host: uint64(i + 1), queue: "a", bytes: 500}, rate: 2 * burst / 8})
	}
	const depth = 0.8 * rate // bits that the counts of each may hold; they are empty at the beginning
	for round := range 3 {
		for _, c := range []struct {
			name  string
			d     time.Duration
			least float64 // bits
			most  float64
		}{
			{"burst", most, 0.95 * burst * most.Seconds(), burst*most.Seconds() + 8*depth},
			{"after it", 200 * time.Millisecond, 0.5 * 0.2 * rate, 1.5 * 0.2 * rate}, // full counts settle
			{"afterwards", 3 * time.Second, 0.98 * 3 * rate, 1.02 * 3 * rate},
		} {
			for _, s := range all {
				s.sent, s.passed = 0, 0
			}
			offerAll(h, c.d, all)
			bits := total(all, time.Second)
			t.Logf("round %d, %s: %.2f Mbit/s", round, c.name, bits/c.d.Seconds()/1e6)
			if bits < c.least || bits > c.most {
				t.Errorf("round %d, %s: %.0f bits in %v, want %.0f to %.0f", round, c.name, bits, c.d, c.least, c.most)
			}
		}
		for range int(most/time.Millisecond) + 2000 { // until nobody owes anything, and then for as long as the burst
			h.tick()
		}
	}
}

// The trees of two interfaces have nothing to do with each other: each carries its rate.
func TestQueueTwoInterfaces(t *testing.T) {
	rates := []float64{5_000_000, 200_000_000, 50_000_000}
	var trees []shaper.Shaper
	var all []*sender
	for i, rate := range rates {
		s := oneClass(uint64(rate))
		s.Interface, s.In = []string{"wan0", "wan1", "wan0"}[i], i == 2
		trees = append(trees, s)
		for k := range 4 {
			all = append(all, &sender{flow: flow{number: uint32(10*i + k + 1), host: uint64(k), tree: uint32(i), bytes: 1000}, rate: rate / 2})
		}
	}
	h := newQueueHarness(t, 1000, trees...)
	const length = 4 * time.Second
	offerAll(h, 2*time.Second, all)
	for _, s := range all {
		s.sent, s.passed = 0, 0
	}
	offerAll(h, length, all)
	for i, rate := range rates {
		if part := total(all[4*i:4*i+4], length) / rate; part < 0.99 || part > 1.01 {
			t.Errorf("tree %d carries %.4f of its rate", i+1, part)
		}
	}
	rand.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	for i := range all { // one rests, the others go on
		if all[i].tree == 1 {
			all[i].rate = 0
		}
		all[i].sent, all[i].passed = 0, 0
	}
	offerAll(h, length, all)
	for i, rate := range rates {
		sum := 0.0
		for _, s := range all {
			if s.tree == uint32(i) {
				sum += s.passedRate(length)
			}
		}
		if part := sum / rate; i != 1 && (part < 0.99 || part > 1.01) || i == 1 && part != 0 {
			t.Errorf("tree %d carries %.4f of its rate while the second rests", i+1, part)
		}
	}
}
