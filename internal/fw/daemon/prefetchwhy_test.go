package daemon

import (
	"errors"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/dataplane"
)

// TestWhyNotPrefetched tells what keeps packets from being prefetched.
func TestWhyNotPrefetched(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	xdp := map[int]hooked{2: {Choice: Choice{XDP, "physical device"}}}
	for _, c := range []struct {
		box  *box
		want string
	}{
		{&box{hooks: xdp}, ""}, // nothing is loaded
		{&box{dp: new(dataplane.Dataplane), hooks: map[int]hooked{2: {Choice: Choice{TCX, ""}}}, cfg: &Config{Prefetch: PrefetchOff}}, ""},
		{&box{dp: new(dataplane.Dataplane), hooks: xdp, cfg: &Config{Prefetch: PrefetchOff}}, "weir run --prefetch off"},
		{&box{dp: new(dataplane.Dataplane), hooks: xdp, cfg: &Config{Prefetch: PrefetchOn}, prefetchFailed: errors.New("no grace period")}, "no grace period"},
		{&box{dp: new(dataplane.Dataplane), hooks: xdp, cfg: &Config{Prefetch: PrefetchAuto}, prefetchGain: gain{many: true, rests: now.Add(time.Second)}}, "it did not pay"},
		{&box{dp: new(dataplane.Dataplane), hooks: xdp, cfg: &Config{Prefetch: PrefetchAuto}, prefetchGain: gain{rests: now.Add(time.Second)}}, "the states fit into the caches"},
	} {
		if got := c.box.whyNot(now); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
