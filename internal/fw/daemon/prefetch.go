package daemon

import "fmt"

// Prefetch is what weir run --prefetch says: whether packets that come in at XDP are
// prefetched, so that their states come from memory many at a time.
type Prefetch string

// Ways to prefetch.
const (
	PrefetchAuto Prefetch = "auto" // where states are too many for the processor's caches
	PrefetchOn   Prefetch = "on"
	PrefetchOff  Prefetch = "off"
)

// ParsePrefetch reads a way.
func ParsePrefetch(s string) (Prefetch, error) {
	switch l := Prefetch(s); l {
	case PrefetchAuto, PrefetchOn, PrefetchOff:
		return l, nil
	}
	return "", fmt.Errorf("prefetch %q: expected auto, on or off", s)
}

// From prefetchFrom states in use on, a packet's state is mostly not in a cache any more
// (docs/measuring.md has the figures); it ends below prefetchUntil, so that it does not go
// to and fro.
const (
	prefetchFrom  = 48 << 10
	prefetchUntil = 24 << 10
)

// wants decides by the states in use, and by whether it is on already.
func (l Prefetch) wants(states uint32, on bool) bool {
	if l != PrefetchAuto {
		return l == PrefetchOn
	}
	return states >= prefetchFrom || on && states >= prefetchUntil
}

// followStates turns prefetching on and off, and has new interfaces share in it.
func (b *box) followStates() {
	if b.dp == nil {
		return
	}
	on := b.dp.Prefetching()
	want := b.cfg.Prefetch.wants(b.dp.View().InUse(), on)
	err := b.dp.Prefetch(want)
	if err != nil && b.prefetchFailed == nil {
		b.cfg.Log.Warn("packets are not prefetched", "reason", err)
	}
	b.prefetchFailed = err
}
