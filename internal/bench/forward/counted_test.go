package forward

import (
	"context"
	"strings"
	"testing"
	"time"

	"weir/internal/bench/paths"
	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
)

// TestCounted: a run whose queues saw too few frames, or dropped some, does not count.
func TestCounted(t *testing.T) {
	for _, c := range []struct {
		counts []paths.QueueCounts // one reading after the other
		want   string
	}{
		{[]paths.QueueCounts{{Packets: 1000}}, ""},
		{[]paths.QueueCounts{{Packets: 10}, {Packets: 995}}, ""},
		{[]paths.QueueCounts{{Packets: 980}}, "the queues counted 980 of 1,000 packets"},
		{[]paths.QueueCounts{{Packets: 1000, Drops: 3}}, "dropped 3 packets"},
	} {
		p := &paths.Path{Counts: func(context.Context, *testbed.Testbed) (paths.QueueCounts, error) {
			now := c.counts[0]
			if len(c.counts) > 1 {
				c.counts = c.counts[1:]
			}
			return now, nil
		}}
		err := counted(t.Context(), &traffic.Setup{}, p, 1000, 50*time.Millisecond)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.counts, err, c.want)
		}
	}
}
