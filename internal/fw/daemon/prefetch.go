package daemon

import "fmt"

// Prefetch is the value of `weir run --prefetch`: whether XDP fetches the states of many
// incoming packets from memory together.
type Prefetch string

// Values of Prefetch.
const (
	PrefetchAuto Prefetch = "auto" // on if there are too many states for the processor's caches
	PrefetchOn   Prefetch = "on"
	PrefetchOff  Prefetch = "off"
)

// ParsePrefetch parses a value.
func ParsePrefetch(s string) (Prefetch, error) {
	switch l := Prefetch(s); l {
	case PrefetchAuto, PrefetchOn, PrefetchOff:
		return l, nil
	}
	return "", fmt.Errorf("prefetch %q: expected auto, on or off", s)
}

// With prefetchFrom or more states in use, a packet's state is usually not in a cache
// (docs/measuring.md has the figures). Prefetching ends below prefetchUntil. The gap
// keeps it from switching back and forth.
const (
	prefetchFrom  = 48 << 10
	prefetchUntil = 24 << 10
)

// decide decides by the number of states in use and by whether prefetching is on.
func (l Prefetch) decide(states uint32, on bool) bool {
	if l != PrefetchAuto {
		return l == PrefetchOn
	}
	return states >= prefetchFrom || on && states >= prefetchUntil
}

// followStates switches prefetching on and off, and includes new interfaces.
func (b *box) followStates() {
	if b.dp == nil {
		return
	}
	on := b.dp.Prefetching()
	want := b.cfg.Prefetch.decide(b.dp.View().InUse(), on)
	err := b.dp.Prefetch(want)
	if err != nil && b.prefetchFailed == nil {
		b.cfg.Log.Warn("cannot prefetch packets", "reason", err)
	}
	b.prefetchFailed = err
}
