package daemon

import (
	"fmt"
	"time"

	"weir/internal/fw/rundir"
	"weir/internal/units"
)

// whyNot says why packets are not prefetched; "": they are, or nothing comes in at XDP.
func (b *box) whyNot(now time.Time) string {
	if b.dp == nil || b.dp.Prefetching() && !b.dp.FollowsPolicies() || !b.hasXDP() {
		return ""
	}
	switch {
	case b.prefetchFailed != nil:
		return b.prefetchFailed.Error()
	case b.cfg.Prefetch == PrefetchOff:
		return "weir run --prefetch off"
	case b.dp.FollowsPolicies():
		return "IPsec policies are followed"
	case b.prefetchGain.many && now.Before(b.prefetchGain.rests):
		return "it did not pay a moment ago: most packets were of connections whose states are in the caches; it is tried again within a minute"
	}
	return fmt.Sprintf("the states fit into the caches (it begins with %s, and ends below %s)", units.Thousands(prefetchFrom), units.Thousands(prefetchUntil))
}

func (b *box) hasXDP() bool {
	for _, h := range b.hooks {
		if h.Hook == XDP {
			return true
		}
	}
	return false
}

// notePrefetch records for weir info why packets are not prefetched, if that has changed.
func (b *box) notePrefetch() {
	if b.dp == nil {
		return
	}
	why := b.whyNot(time.Now())
	if b.noted && why == b.prefetchWhy {
		return
	}
	if err := rundir.WriteJSON(b.cfg.Folder.Prefetch(), rundir.Prefetch{Why: why}); err != nil {
		b.cfg.Log.Warn("record why packets are not prefetched", "error", err)
		return
	}
	b.prefetchWhy, b.noted = why, true
}
