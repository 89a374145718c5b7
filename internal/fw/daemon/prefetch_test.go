package daemon

import (
	"testing"
	"time"
)

// TestGain: prefetching rests for a minute after a second in which it did not pay, and is
// tried again then.
func TestGain(t *testing.T) {
	begin := time.Unix(1_000_000, 0)
	var g gain
	on := true
	for _, step := range []struct {
		what           string
		second         int
		queued, spared uint64
		hints          uint32
		want           bool
	}{
		{"nothing yet", 0, 0, 0, 0, true},
		{"each packet takes two passes", 1, 100_000, 0, 0, true},
		{"few packets, all spared", 2, 100_000, 9_999, 0, true},
		{"mostly spared", 3, 110_000, 109_999, 0, false},
		{"it is off", 4, 110_000, 109_999, 0, false},
		{"it is off", 62, 110_000, 109_999, 0, false},
		{"tried again", 63, 110_000, 109_999, 0, true},
		{"other traffic", 64, 210_000, 209_999, 0, true},
		{"a load, and mostly spared", 65, 1_000, 99_000, 0, false},
		{"tried again, and all hints are void", 126, 1_000, 99_000, 1, true},
		{"few hints yet, so mostly spared", 130, 2_000, 199_000, 1, true},
		{"other routes: likewise", 134, 3_000, 299_000, 2, true},
		{"hints are there again", 144, 103_000, 319_000, 2, true},
		{"mostly spared with hints", 145, 104_000, 419_000, 2, false},
		{"tried again", 206, 104_000, 419_000, 2, true},
		{"a little less than half takes two passes", 207, 204_000, 520_000, 2, false},
		{"tried again", 268, 204_000, 520_000, 2, true},
		{"half of them", 269, 304_000, 620_000, 2, true},
	} {
		now := begin.Add(time.Duration(step.second) * time.Second)
		if on {
			g.judge(step.queued, step.spared, step.hints, now)
		}
		if on = g.want(prefetchFrom, on, now); on != step.want {
			t.Errorf("second %d, %s: %t", step.second, step.what, on)
		}
	}
}

// TestGainStates: the number of states decides with a gap, which a rest does not close.
func TestGainStates(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var g gain
	for _, step := range []struct {
		what   string
		states uint32
		on     bool // what the dataplane says
		rest   bool // it rests from now on for a minute
		want   bool
	}{
		{"few", prefetchFrom - 1, false, false, false},
		{"enough", prefetchFrom, false, false, true},
		{"fewer", prefetchUntil, true, false, true},
		{"a rest", prefetchUntil, true, true, false},
		{"after the rest there are still enough", prefetchUntil, false, false, true},
		{"too few", prefetchUntil - 1, true, false, false},
		{"again as many", prefetchUntil, false, false, false},
		{"a daemon that took over while it was on", prefetchUntil, true, false, true},
	} {
		now = now.Add(prefetchRest)
		if step.rest {
			g.rests = now.Add(prefetchRest)
		}
		if got := g.want(step.states, step.on, now); got != step.want {
			t.Errorf("%s: %t", step.what, got)
		}
	}
}
