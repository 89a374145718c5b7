package dataplane

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/internal/fw/shaper"
)

// Two classes of four connections each send no more than the rate in any 10 s, although the class of low priority, or of
// little weight, has what the other one does not need yet while both start.
func TestQueueClassesTogether(t *testing.T) {
	const rate, length = 50_000_000, 20 * time.Second
	for name, c := range map[string]struct {
		first, second shaper.Class
		part          float64
	}{
		"weights": {shaper.Class{Weight: 30}, shaper.Class{Weight: 10}, 0.75},
		"priority with a floor": {
			shaper.Class{Weight: 25, Priority: 2}, shaper.Class{Weight: 25, Priority: 1, Min: shaper.Rate{Bytes: 5_000_000 / 8}}, 0.9,
		},
	} {
		c.first.Name, c.second.Name, c.second.Default = "first", "second", true
		h := newQueueHarness(t, 1000, shaper.Shaper{Interface: "wan0", Link: shaper.Link{Known: true}, Classes: []shaper.Class{
			{Name: "up", Parent: -1, Weight: 1, Max: shaper.Rate{Bytes: rate / 8}, First: 1, Children: 2}, c.first, c.second,
		}})
		var all []*cubic
		for i := range uint32(8) {
			f := newCubic(i+1, 1, 20*time.Millisecond)
			f.queue = []string{"first", "second"}[i/4]
			all = append(all, f)
		}
		random := rand.New(rand.NewPCG(1, 2))
		for at := time.Duration(0); at < length; at += time.Millisecond {
			for _, i := range random.Perm(len(all)) {
				all[i].offer(h, at)
			}
			h.tick()
		}
		passed, first := 0, 0
		for i, f := range all {
			passed += f.passed
			if i < 4 {
				first += f.passed
			}
		}
		slots := together(all, rate)
		sum, part, most := float64(passed)*1538*8/length.Seconds()/rate, float64(first)/float64(passed), highest(slots, 40)
		t.Logf("%s: %.3f of the rate, %.3f of it the first class's; highest 250 ms %.2f, 10 s %.4f", name, sum, part, highest(slots, 1), most)
		if sum < 0.99 || most > 1.009 {
			t.Errorf("%s: %.3f of the rate, and %.4f in 10 s; want at least 0.99, and 1.009 at most", name, sum, most)
		}
		if part < c.part-0.01 || part > c.part+0.01 {
			t.Errorf("%s: the first class has %.3f of the rate, want %.2f", name, part, c.part)
		}
	}
}

// A connection that was alone pays back little by little what it owes when nine others start, as its share is smaller then: it
// goes on meanwhile.
func TestQueueFirstOfMany(t *testing.T) {
	const rate, others, length = 50_000_000, 300 * time.Millisecond, 3 * time.Second
	h := newQueueHarness(t, 1000, shaper.Shaper{Interface: "wan0", Link: shaper.Link{Known: true}, Classes: []shaper.Class{
		{Name: "up", Parent: -1, Weight: 1, Max: shaper.Rate{Bytes: rate / 8}, Default: true},
	}})
	var all []*cubic
	for i := range uint32(10) {
		f := newCubic(i+1, 1, 20*time.Millisecond)
		f.queue = "up"
		all = append(all, f)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for at := time.Duration(0); at < length; at += time.Millisecond {
		for _, i := range random.Perm(len(all)) {
			if i == 0 || at >= others {
				all[i].offer(h, at)
			}
		}
		h.tick()
	}
	const share = rate / 10 / 8 / 4 / 1538 // packets in 250 ms
	first := all[0].per[2:]                // from 500 ms on
	t.Logf("in each 250 ms of %d packets it has %v", share, first)
	if least := slices.Min(first); least < share/4 {
		t.Errorf("it has %d packets in some 250 ms, and its share is %d", least, share)
	}
}
