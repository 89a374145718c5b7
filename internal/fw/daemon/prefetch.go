package daemon

import (
	"errors"
	"fmt"
	"time"
)

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

// While prefetching is on, every frame that leaves costs a run of the second program. That
// pays if at least prefetchShare of the packets whose connection is known takes two
// passes. Otherwise prefetching rests: in trains and in busy connections the states are in
// the caches anyway.
const (
	prefetchShare = 0.5
	prefetchRest  = time.Minute
	// prefetchSettle is how long after all hints became void nothing is judged: packets without a
	// hint take one pass.
	prefetchSettle = 10 * time.Second
	// prefetchLeast is how many packets a judgement needs.
	prefetchLeast = 10_000
)

// A gain decides for PrefetchAuto: whether there are enough states, and whether prefetching
// pays with the traffic that there is.
type gain struct {
	many           bool      // there are enough states, also while prefetching rests
	queued, spared uint64    // what was counted before
	rests          time.Time // until then prefetching is off
	hints          uint32    // the generation of hints
	settles        time.Time // until then nothing is judged
}

// want reports whether prefetching is to be on, by the number of states in use and by
// whether it is on.
func (g *gain) want(states uint32, on bool, now time.Time) bool {
	g.many = states >= prefetchFrom || (on || g.many) && states >= prefetchUntil
	return g.many && !now.Before(g.rests)
}

// judge takes what was counted while prefetching was on. Counts begin at 0 with each load.
// It is called each second. hints is another number each time when all hints become void.
func (g *gain) judge(queued, spared uint64, hints uint32, now time.Time) {
	if queued < g.queued || spared < g.spared {
		g.queued, g.spared = 0, 0
	}
	if hints != g.hints {
		g.hints, g.settles = hints, now.Add(prefetchSettle)
	}
	if now.Before(g.settles) {
		g.queued, g.spared = queued, spared
		return
	}
	q, s := queued-g.queued, spared-g.spared
	if q+s < prefetchLeast {
		return
	}
	g.queued, g.spared = queued, spared
	if float64(q) < prefetchShare*float64(q+s) {
		g.rests = now.Add(prefetchRest)
	}
}

// followStates switches prefetching on and off, and includes new interfaces.
func (b *box) followStates() {
	if b.dp == nil {
		return
	}
	want := b.cfg.Prefetch == PrefetchOn
	var err error
	if b.cfg.Prefetch == PrefetchAuto {
		want, err = b.wantPrefetch(time.Now())
	}
	err = errors.Join(err, b.dp.Prefetch(want))
	if err != nil && b.prefetchFailed == nil {
		b.cfg.Log.Warn("cannot prefetch packets", "reason", err)
	}
	b.prefetchFailed = err
}

// wantPrefetch decides for PrefetchAuto.
func (b *box) wantPrefetch(now time.Time) (want bool, err error) {
	on := b.dp.Prefetching()
	if on {
		var queued, spared uint64
		if queued, spared, err = b.dp.PrefetchCounts(); err == nil {
			b.prefetchGain.judge(queued, spared, b.dp.RouteGeneration(), now)
		}
	}
	return b.prefetchGain.want(b.dp.View().InUse(), on, now), err
}
