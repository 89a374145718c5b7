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
		want           bool
	}{
		{"nothing yet", 0, 0, 0, true},
		{"each packet takes two passes", 1, 100_000, 0, true},
		{"few packets, all spared", 2, 100_000, 9_999, true},
		{"mostly spared", 3, 110_000, 109_999, false},
		{"it is off", 4, 110_000, 109_999, false},
		{"it is off", 62, 110_000, 109_999, false},
		{"tried again", 63, 110_000, 109_999, true},
		{"other traffic", 64, 210_000, 209_999, true},
		{"a load, and mostly spared", 65, 1_000, 99_000, false},
	} {
		if got := g.note(step.queued, step.spared, begin.Add(time.Duration(step.second)*time.Second)); got != step.want {
			t.Errorf("second %d, %s: %t", step.second, step.what, got)
		}
	}
}
