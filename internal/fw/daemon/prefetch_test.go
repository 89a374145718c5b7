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
	} {
		if got := g.note(step.queued, step.spared, step.hints, begin.Add(time.Duration(step.second)*time.Second)); got != step.want {
			t.Errorf("second %d, %s: %t", step.second, step.what, got)
		}
	}
}
